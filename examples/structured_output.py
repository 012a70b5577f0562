"""An answer of a type: what does not fit is sent back to the model with what is wrong."""

from pydantic import BaseModel, Field

from treadle import Agent
from treadle.testing import ScriptedModel


class Invoice(BaseModel):
    number: str
    total: float = Field(ge=0)


model = ScriptedModel(
    [
        '{"number": "A-17", "total": "a lot"}',  # wrong the first time
        '{"number": "A-17", "total": 99.5}',
    ]
)
agent = Agent(model, output=Invoice)
result = agent.run_sync("Read the invoice.")

print(repr(result.output))
print(len(result.steps), "steps; the model was told:")
print(model.requests[1].messages[-1].text)
