"""Writes a language model of made-up weights, small enough to answer at once: `python tiny_gguf.py model.gguf`.

It knows the 256 bytes and a few special tokens, and says random things; a server that holds a model to a grammar makes
random valid tool calls and JSON of them. A few columns of weights are not random: they make some bytes likelier, so
that texts are short, mostly letters, and end, and thinking and calls begin and end where they may. Needs the `gguf`
package; `scripts/peers.py` runs it where there is one.
"""

import sys

import gguf
import numpy

WIDTH = 64
HEADS = 4
CONTEXT = 65536
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4

BEGIN, END, CALL, CALLED, THINK, THOUGHT = (
    "<|im_start|>",
    "<|im_end|>",
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</think>",
)

# What is likely after what: thoughts when a line has just begun, as a reply does; an end where a call may end.
FOLLOWS = (("Ċ", THINK), ("}", CALLED), (CALLED, END), (THOUGHT, CALL))

TEMPLATE = """
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{% endif %}
    {{- 'Tools:\\n' }}
    {%- for tool in tools %}{{- (tool | tojson) + '\\n' }}{% endfor %}
    {{- 'To call one: <tool_call>{"name": NAME, "arguments": ARGUMENTS}</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {{- '<|im_start|>user\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if message.reasoning_content %}
            {{- '<think>' + message.reasoning_content + '</think>' }}
        {%- endif %}
        {%- if message.content %}{{- message.content }}{% endif %}
        {%- if message.tool_calls %}
            {%- for call in message.tool_calls %}
                {{- '<tool_call>{"name": "' + call.function.name + '", "arguments": ' }}
                {{- call.function.arguments | tojson }}
                {{- '}</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}
"""


def byte_names() -> list[str]:
    """The printable character that stands for each byte in a byte-level vocabulary (GPT-2's rule)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte if byte in printable else 256 + others.index(byte)) for byte in range(256)]


def likelihoods(tokens: list[str]) -> numpy.ndarray:
    """How likely each token is, as logits, whatever was said before."""
    logits = numpy.full(len(tokens), -4.0)
    for byte in b"abcdefghijklmnopqrstuvwxyz 0123456789":
        logits[byte] = 2.0
    for byte in b'",]}:{[':
        logits[byte] = 3.0
    for token, logit in ((END, 4.5), (CALL, 4.2), (THINK, 0.0), (THOUGHT, 3.0), (BEGIN, -20.0), (CALLED, 0.0)):
        logits[tokens.index(token)] = logit
    return logits


def write(path: str) -> None:
    """Writes the model."""
    names = byte_names()
    specials = [BEGIN, END, CALL, CALLED, THINK, THOUGHT]
    tokens = [*names, names[ord("t")] + names[ord("h")], *specials]
    random = numpy.random.default_rng(1)

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("made-up")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([NORMAL] * 257 + [CONTROL] * 2 + [USER_DEFINED] * 4)
    writer.add_token_merges(["t h"])
    writer.add_eos_token_id(tokens.index(END))
    writer.add_bos_token_id(tokens.index(BEGIN))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)

    def tensor(name: str, rows: int, columns: int) -> None:
        writer.add_tensor(name, (random.standard_normal((rows, columns)) * 0.05).astype(numpy.float32))

    embeddings = random.standard_normal((len(tokens), WIDTH))
    output = random.standard_normal((len(tokens), WIDTH)) * 0.08
    # The first number of every state is large and known: after the norm it is about 8 / sqrt(2).
    embeddings[:, 0] = 8.0
    output[:, 0] = likelihoods(tokens) * 2**0.5 / 8
    # The next ones say which token came last, so that what may follow it does.
    for number, (token, following) in enumerate(FOLLOWS, start=1):
        embeddings[:, number] = 0.0
        embeddings[tokens.index(token), number] = 8.0
        output[:, number] = 0.0
        output[tokens.index(following), number] = 1.0
    writer.add_tensor("token_embd.weight", embeddings.astype(numpy.float32))
    writer.add_tensor("output.weight", output.astype(numpy.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", numpy.ones(WIDTH, numpy.float32))
    for name in ("attn_q", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        tensor(f"blk.0.{name}.weight", WIDTH, WIDTH)
    for name in ("attn_k", "attn_v"):
        tensor(f"blk.0.{name}.weight", WIDTH // HEADS, WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write(sys.argv[1])
