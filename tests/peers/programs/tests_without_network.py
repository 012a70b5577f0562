"""The same with pydantic-ai: a function plays the model."""

from pydantic_ai import (
    Agent,
    ModelMessage,
    ModelResponse,
    ModelRetry,
    TextPart,
    ToolCallPart,
    capture_run_messages,
    models,
)
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.function import AgentInfo, FunctionModel

models.ALLOW_MODEL_REQUESTS = False
shop = Agent("openai:gpt-5", defer_model_check=True)


@shop.tool_plain
def stock(product: str) -> int:
    """Tells how many there are of a product."""
    if product != "tea":
        raise ModelRetry(f"there is no {product}")
    return 3


def asking_for(product: str, text: str) -> FunctionModel:
    def play(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse([ToolCallPart("stock", {"product": product})])
        return ModelResponse([TextPart(text)])

    return FunctionModel(play)


def test_the_stock_is_looked_up() -> None:
    result = shop.run_sync("How much tea is there?", model=asking_for("tea", "There are three."))
    assert result.output == "There are three."
    calls = [part for message in result.all_messages() for part in message.parts if part.part_kind == "tool-call"]
    assert [(call.tool_name, call.args_as_dict()) for call in calls] == [("stock", {"product": "tea"})]
    assert [part.content for part in result.all_messages()[2].parts if part.part_kind == "tool-return"] == [3]


def test_what_is_not_there_is_told_to_the_model() -> None:
    result = shop.run_sync("How much wine is there?", model=asking_for("wine", "There is no wine."))
    assert "there is no wine" in str(result.all_messages()[2].parts[0])


def test_a_busy_model_is_told() -> None:
    def busy(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise ModelHTTPError(529, "gpt-5")

    with capture_run_messages() as messages:
        try:
            shop.run_sync("How much tea is there?", model=FunctionModel(busy))
        except ModelHTTPError as error:
            assert error.status_code == 529
    assert len(messages) == 1


# --- the program ends here

if __name__ == "__main__":
    import subprocess
    import sys

    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    raise SystemExit(subprocess.run(command).returncode)
