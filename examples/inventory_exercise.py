"""The inventory exercise: three small tools of your own, and a question that needs all of them, one after the other."""

from treadle import Agent, tool

STOCK = {"widget": 150, "gadget": 75}
PRICES = {"widget": 9.99, "gadget": 24.99}


@tool(effect="read")
def check_stock(item_name: str) -> int:
    """Tells how many pieces of an item are in stock.

    Args:
        item_name: the item's name, such as "widget".
    """
    return STOCK[item_name.removesuffix("s")]


@tool(effect="read")
def get_price(item_name: str) -> float:
    """Tells what one piece of an item costs, in dollars.

    Args:
        item_name: the item's name, such as "widget".
    """
    return PRICES[item_name.removesuffix("s")]


@tool(effect="read")
def calculate_total(quantity: int, unit_price: float) -> float:
    """Calculates what a quantity costs in all.

    Args:
        quantity: how many pieces.
        unit_price: what one of them costs, in dollars.
    """
    return round(quantity * unit_price, 2)


agent = Agent("offline", tools=[check_stock, get_price, calculate_total])
result = agent.run_sync("What do 3 gadgets cost?")

for call in result.tool_calls_made:
    print(call.name, call.arguments, "->", call.result.text)
print(result.text)
