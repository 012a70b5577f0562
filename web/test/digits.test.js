// No digit is lost between the server's JSON and what a person sees; and nothing that cannot be seen stays unseen.
import assert from "node:assert/strict";
import { test } from "node:test";
import { runnerImport } from "vite";

const load = async (path) => (await runnerImport(new URL(`../src/${path}`, import.meta.url).pathname)).module;
const { Exact, laidOut, read, written } = await load("api/json.ts");
const { dollars, grouped, percent } = await load("parts/figures.ts");
const { aligned } = await load("parts/lines.ts");
const { pieces, visible, visibleJson } = await load("parts/visible.ts");

test("a number that JavaScript holds is that number, and any other its digits", () => {
  for (const token of ["0", "-0", "1e-05", "-2E-7", "0.1", "1.10", "100000000000000000000", "5e-324", "0.30000000000000004"])
    assert.equal(read(`[${token}, 12345678901234567890]`)[0], Number(token), token);
  for (const token of ["9007199254740993", "-9007199254740993", "12345678901234567890.10", "1e400", "1.0000000000000001", "0.1000000000000000055"]) {
    const [found] = read(`[${token}]`);
    assert.ok(found instanceof Exact, token);
    assert.equal(String(found), token);
  }
  let seed = 1;
  for (let round = 0; round < 20_000; round++) {
    seed = (seed * 48271) % 2147483647;
    const value = (seed / 2147483647 - 0.5) * 10 ** ((seed % 600) - 300);
    assert.equal(read(`[${value.toExponential()}, 12345678901234567890]`)[0], value);
  }
});

test("texts with digits in them, and names that are special elsewhere, stay as they are", () => {
  const text = '{"__proto__":{"a":1},"b":"12345678901234567890","c\\"1e400":"\\\\","d":12345678901234567890}';
  const found = read(text);
  assert.deepEqual(Object.keys(found), ["__proto__", "b", 'c"1e400', "d"]);
  assert.equal(found.b, "12345678901234567890");
  assert.equal(written(found).replace(/\s/g, ""), text);
});

test("JSON is laid out token by token, with names that come twice", () => {
  const text = '{"a":1.10,"a":[ ],"s":"x, {\\"y\\": 1}","n":[{"m":{}},-0.0e+00]}';
  assert.equal(laidOut(text).replace(/\n */g, "").replaceAll(": ", ":"), text.replace("[ ]", "[]").replace('\\"y\\": 1', '\\"y\\":1'));
});

test("money keeps its digits, and what is not known is not zero", () => {
  assert.equal(dollars("12345678901234567890.5"), "$12,345,678,901,234,567,890.50");
  assert.equal(dollars("1.1E-7"), "$0.00000011");
  assert.equal(dollars("-2.5"), "−$2.50");
  assert.equal(dollars("0E-7"), "$0");
  assert.equal(dollars(null), "unknown");
  assert.equal(grouped("-1234567.891"), "−1,234,567.891");
  assert.equal(percent(0.001), "< 0.1 %");
  assert.equal(percent(99.999), "> 99.9 %");
});

test("what cannot be seen is an escape, and the same when it is read again", () => {
  assert.equal(visible("a\u202eb\u{e0041}c\u00a0d\r"), "a\\u202eb\\u{e0041}c\\u00a0d\\r");
  const text = JSON.stringify({ iban: "AT\u202e1\u200b", tag: "\u{e0041}" });
  assert.deepEqual(JSON.parse(visibleJson(text)), JSON.parse(text));
  assert.equal(pieces("👨‍👩‍👧 नमस्ते", true).some((piece) => piece.escaped), false);
  assert.equal(pieces("a\u200bb", true).some((piece) => piece.escaped), true);
});

test("two texts are aligned line by line", () => {
  const lines = aligned("a\nb\nc", "a\nx\nc").map((line) => line.side + line.text);
  assert.deepEqual(lines, ["botha", "ab", "bx", "bothc"]);
});
