"""An agent with a calculator and a clock, both built in; its trace is printed as it works. No key is needed."""

from treadle import Agent, print_trace
from treadle.tools.builtin import calculator, current_time

agent = Agent("offline", tools=[calculator, current_time], instructions="Answer with the result.")
result = agent.run_sync("What is 25 * 4 + 10?", on_event=print_trace)

print(result.text)
