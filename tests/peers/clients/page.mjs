// Renders a page of the docs as a browser would, says something in it, and presses a button.
import { readFileSync, writeFileSync } from "node:fs";
import { JSDOM } from "jsdom";
import ts from "typescript";

const { code, say, press, until } = JSON.parse(readFileSync(0, "utf8"));
const options = { jsx: ts.JsxEmit.ReactJSX, module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
writeFileSync("page.js.mjs", ts.transpileModule(code, { compilerOptions: options }).outputText);
const { window } = new JSDOM("<div id='root'></div>", { url: "http://localhost/", pretendToBeVisual: true });
Object.assign(globalThis, { window, document: window.document, IS_REACT_ACT_ENVIRONMENT: false });
// Newer Nodes have one of their own, which cannot be assigned to.
if (!("navigator" in globalThis)) globalThis.navigator = window.navigator;
const { createRoot } = await import("react-dom/client");
const { createElement } = await import("react");
const { default: Page } = await import(`${process.cwd()}/page.js.mjs`);
const opened = () => {
  const root = createRoot(document.getElementById("root"));
  root.render(createElement(Page));
  return root;
};
const root = opened();

const wait = async (found) => {
  for (let i = 0; i < 1000; i++) {
    const it = found();
    if (it) return it;
    await new Promise((done) => setTimeout(done, 10));
  }
  throw new Error(`waited in vain; the page is: ${document.body.textContent}`);
};
const input = await wait(() => document.querySelector("input"));
Object.getOwnPropertyDescriptor(window.HTMLInputElement.prototype, "value").set.call(input, say);
input.dispatchEvent(new window.Event("input", { bubbles: true }));
await new Promise((done) => setTimeout(done, 50));
document.querySelector("form").dispatchEvent(new window.Event("submit", { bubbles: true, cancelable: true }));
const button = await wait(() => [...document.querySelectorAll("button")].find((one) => one.textContent === press));
const asked = document.body.textContent;
button.dispatchEvent(new window.MouseEvent("click", { bubbles: true }));
await wait(() => document.body.textContent.includes(until));
const done = document.body.textContent;
root.unmount();
await wait(() => !document.body.textContent);
opened();
await wait(() => document.body.textContent.includes(until));
console.log(JSON.stringify({ asked, done, opened: document.body.textContent }));
process.exit(0);
