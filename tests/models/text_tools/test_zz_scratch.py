import random, time
import pytest
from .test_properties import check_events, cut, FRAGMENTS
MORE=["[TOOL_CALLS]","[/TOOL_CALLS]","<|python_tag|>","<|tools_prefix|>","<|tools_suffix|>","<minimax:tool_call>","</minimax:tool_call>","<tool_calls>","</tool_calls>","<function_calls>","</function_calls>","<|tool_calls|>","`<tool_calls>`","<x:function-calls>",
" is what it writes"," means a call"," search ","search","[TOOL_REQUEST]","[END_TOOL_REQUEST]","<start_function_call>","<|tool_calls_section_begin|>","<|tool_call_begin|>","<｜DSML｜function_calls>",'[{"name":"search","arguments":{"query":"x"}}]','{"search": {"query": "x"}}','{"toolCalls":[{"name":"search","arguments":{"query":"x"}}]}','[ARGS]{"query":"x"}','search{"query":"x"}',"\n","```","```\n","```json\n","```tool-calls\n","the mark "]
@pytest.mark.parametrize("format",["json","react","tags"])
def test_fuzz(protocols, format):
    rnd=random.Random(time.time()); bad=[]; end=time.time()+55; n=0
    while time.time()<end:
        n+=1
        text="".join(rnd.choice(MORE if rnd.random()<.7 else FRAGMENTS) for _ in range(rnd.randint(1,8)))
        try:
            whole=protocols.events(text,format); check_events(whole)
            for pieces in (list(text), cut(text,[rnd.randint(0,500) for _ in range(5)])):
                ev=protocols.events(text,format,pieces); check_events(ev)
                assert ev[-1]==whole[-1]
        except AssertionError as e:
            bad.append((text,str(e)[:300]))
    print(format,n,len(bad))
    for b in sorted(bad,key=lambda x:len(x[0]))[:4]: print(b)
    assert not bad
