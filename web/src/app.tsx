/** The page as a whole: its head, and the page that the address names. */

import { Component, type ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, unknown } from "./api/client";
import { Failure } from "./parts/frame";
import { ChatPage } from "./pages/chat";
import { ComparePage } from "./pages/compare";
import { FiguresPage } from "./pages/figures";
import { LoginPage } from "./pages/login";
import { RunsPage } from "./pages/runs";
import { address, onClick, usePlace } from "./router";
import { RunPage } from "./run/page";

const PAGES: [string, string][] = [["runs", "Runs"], ["chat", "Chat"], ["compare", "Compare"], ["figures", "Figures"]];

/** The whole page. */
export function App() {
  const { path } = usePlace();
  const [known, setKnown] = useState<boolean | null>(null);
  useEffect(() => {
    const ask = () => setKnown(false);
    unknown.addEventListener("unknown", ask);
    get<{ user: unknown; login: boolean }>("api/session").then((who) => setKnown(who.user !== null || !who.login)).catch(() => setKnown(true));
    return () => unknown.removeEventListener("unknown", ask);
  }, []);
  const here = path[0] ?? "runs";
  return (
    <div class="app" onClick={onClick}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Go to the content</a>
      <header class="head">
        <a class="brand" data-page="1" href={address("runs")}>treadle</a>
        <nav aria-label="Pages">
          {PAGES.map(([name, label]) => <a key={name} data-page="1" href={address(name)} aria-current={here === name ? "page" : undefined}>{label}</a>)}
        </nav>
        <Theme />
      </header>
      <main id="main" tabIndex={-1}>
        <Caught key={path.join("/")}>{known === false ? <LoginPage onDone={() => setKnown(true)} /> : known === null ? <p class="nothing">…</p> : page(path)}</Caught>
      </main>
    </div>
  );
}

function page(path: string[]) {
  const [name = "runs", id, view = "story", step] = path;
  if (name === "runs" && id === undefined) return <RunsPage />;
  if (name === "runs" && id !== undefined) return <RunPage key={id} id={id} view={view} step={step === undefined ? null : Number(step)} />;
  if (name === "chat") return <ChatPage path={path.slice(1)} />;
  if (name === "compare") return <ComparePage />;
  if (name === "figures") return <FiguresPage />;
  return <p class="nothing">There is no page of this name. <a data-page="1" href={address("runs")}>All runs</a></p>;
}

/** Says what went wrong in a part of the page, instead of an empty one. */
class Caught extends Component<{ children: ComponentChildren }, { error: Error | null }> {
  override state = { error: null as Error | null };

  static override getDerivedStateFromError(error: Error) {
    return { error };
  }

  render() {
    if (!this.state.error) return this.props.children;
    return <div class="page-scroll"><Failure error={new Error(`This page could not be shown: ${this.state.error.message}`)} onAgain={() => this.setState({ error: null })} /></div>;
  }
}

const THEMES = ["auto", "light", "dark"] as const;

function Theme() {
  const [theme, setTheme] = useState<(typeof THEMES)[number]>(() => kept());
  useEffect(() => {
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    try {
      localStorage.setItem("treadle-theme", theme);
    } catch {
      // A browser that keeps nothing shows what it is set to.
    }
  }, [theme]);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
  return <button type="button" class="quiet theme" onClick={() => setTheme(next)} aria-label={`Colours: ${theme}. Change to ${next}.`} title={`Colours: ${theme}`}>{{ auto: "◐", light: "☀", dark: "☾" }[theme]}</button>;
}

function kept(): (typeof THEMES)[number] {
  try {
    return THEMES.find((one) => one === localStorage.getItem("treadle-theme")) ?? "auto";
  } catch {
    return "auto";
  }
}
