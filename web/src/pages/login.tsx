/** Asks for the token of the server, once for each browser session. */

import { useState } from "preact/hooks";
import { send } from "../api/client";
import { useDoing } from "../api/use";
import { Failure, Field, useTitle } from "../parts/frame";

/** The page before all others, where the server wants a token. */
export function LoginPage({ onDone }: { onDone(): void }) {
  useTitle("Log in");
  const [token, setToken] = useState("");
  const doing = useDoing();
  return (
    <form class="login" onSubmit={(event) => { event.preventDefault(); void doing.run(async () => { await send("POST", "api/session", { token }); onDone(); }); }}>
      <h1>Log in</h1>
      <input type="text" autocomplete="username" value="treadle" readOnly hidden />
      <Field label="The server's token" hint="Whoever started the server has it."><input type="password" autocomplete="current-password" value={token} onInput={(event) => setToken(event.currentTarget.value)} /></Field>
      <Failure error={doing.error} />
      <button type="submit" class="main" disabled={doing.busy || !token}>Log in</button>
    </form>
  );
}
