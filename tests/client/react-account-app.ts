import { createElement, StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createClient } from "../../src/client/index.ts";
import { AccountButton, PlatformProvider, SignedIn, SignedOut, useUser } from "../../src/client/react/index.ts";

// An application that signs in at the pages of the server.

const client = createClient({ url: location.origin });

const Greeting = () => createElement("p", { id: "greeting" }, `Hello, ${useUser()?.email ?? "nobody"}`);

const App = () =>
  createElement(
    PlatformProvider,
    { client },
    createElement(AccountButton, { signIn: "Log in" }),
    createElement(SignedOut, null, createElement("p", { id: "out" }, "Nobody is signed in")),
    createElement(SignedIn, null, createElement(Greeting)),
  );

const root = document.getElementById("root");
if (root !== null) createRoot(root).render(createElement(StrictMode, null, createElement(App)));
