"""Tools from a description file: JSON that somebody keeps elsewhere, carried out by functions of the same names.

The model reads the descriptions, and arguments that do not fit them are refused before a function is called. An item
says what it takes by a JSON Schema (`input_schema`, `parameters`) or in words (`inputs`). On the command line the same
pair is `treadle ask "How many widgets are in stock?" --tools described_tools.json:described_tools.py`.
"""

from pathlib import Path

from treadle import Agent, load_tools

STOCK = {"widget": 150, "gadget": 75}
PRICES = {"widget": 9.99, "gadget": 24.99}


def check_stock(item_name):
    return STOCK[item_name.removesuffix("s")]


def get_price(item_name):
    return PRICES[item_name.removesuffix("s")]


if __name__ == "__main__":
    here = Path(__file__)
    agent = Agent("offline", tools=load_tools(here.with_suffix(".json"), here))
    result = agent.run_sync("How many widgets are in stock, and what does a gadget cost?")
    for call in result.tool_calls_made:
        print(call.name, call.arguments, "->", call.result.text)
