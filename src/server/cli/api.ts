import { readFileSync } from "node:fs";
import { Command, Option } from "@commander-js/extra-typings";
import { reasonOf } from "../../kernel/errors.ts";
import { isJsonObject } from "../../kernel/json/json.ts";
import { HOST_DEFAULT, PORT_DEFAULT } from "../http/listening/listener.ts";
import { CommandError, UsageError } from "./errors.ts";
import { COMPLETIONS_MAX } from "./limits.ts";
import { keyOption, option } from "./options.ts";
import { outputFailure, printAnswer } from "./output.ts";
import { type Remote, remoteOf } from "./remote.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/** Completes methods and paths in bash, and in zsh after bashcompinit. */
const COMPLETION = `_platform() {
  local word=\${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  [ "\${COMP_WORDS[1]}" = api ] || return
  if [ "$COMP_CWORD" -eq 2 ]; then COMPREPLY=($(compgen -W "${METHODS.join(" ")}" -- "$word"))
  elif [ "$COMP_CWORD" -eq 3 ]; then
    COMPREPLY=($(compgen -W "$(platform api --complete "\${COMP_WORDS[2]}" "$word" 2> /dev/null)" -- "$word"))
    compopt -o nospace 2> /dev/null
  fi
}
complete -F _platform platform`;

export const apiCommand = new Command("api")
  .description("Sends a request to a running server, and prints the answer: platform api GET db/shared/tables/films")
  .argument("[METHOD]", METHODS.join(", "))
  .argument("[PATH]", "The path behind /api/, or from / on")
  .argument("[BODY]", "JSON, @FILE with JSON, or - for standard input")
  .addOption(
    new Option("--query <NAME=VALUE>", "A parameter of the query, which is encoded; may be repeated")
      .argParser((pair: string, before: readonly string[]): readonly string[] =>
        before.includes(pair) ? before : [...before, pair],
      )
      .default([] as readonly string[], "none"),
  )
  .addOption(option("--url <URL>", "The server").default(`http://${HOST_DEFAULT}:${PORT_DEFAULT}`))
  .addOption(keyOption)
  .option("--completion", "Print the completion of methods and paths: source <(platform api --completion)")
  .option("--complete", "Print the paths of METHOD that begin with PATH")
  .action(async (method, path, body, { query, url, key, completion, complete }) => {
    if (completion === true) return printAnswer(COMPLETION);
    const verb = (method ?? "").toUpperCase();
    if (!METHODS.includes(verb))
      throw new UsageError(`METHOD must be one of ${METHODS.join(", ")}, got "${method ?? ""}"`);
    const remote = remoteOf({ url, key });
    if (remote === null) return;
    if (complete === true) return printAnswer((await pathsOf(remote, verb, path ?? "")).join("\n"));
    if (path === undefined) throw new UsageError("PATH is missing, such as db/shared/tables/films");
    await ask(remote, verb, target(path, query), body === undefined ? null : await bodyOf(body));
  });

/** Returns the path with its query. Errors: UsageError for a parameter without a name. */
function target(path: string, query: readonly string[]): string {
  const parameters = query.map((pair) => {
    const at = pair.indexOf("=");
    if (at < 1) throw new UsageError(`--query must be NAME=VALUE, got "${pair}"`);
    return `${encodeURIComponent(pair.slice(0, at))}=${encodeURIComponent(pair.slice(at + 1))}`;
  });
  const whole = path.startsWith("/") ? path : `/api/${path}`;
  return parameters.length === 0 ? whole : `${whole}${whole.includes("?") ? "&" : "?"}${parameters.join("&")}`;
}

/** Returns the text of a body. Errors: UsageError where it is no JSON. */
async function bodyOf(given: string): Promise<string> {
  let text = given;
  try {
    if (given === "-") text = await Bun.stdin.text();
    else if (given.startsWith("@")) text = readFileSync(given.slice(1), "utf8");
    JSON.parse(text);
    return text;
  } catch (cause) {
    throw new UsageError(`BODY must be JSON, @FILE or -: ${reasonOf(cause)}`, { cause });
  }
}

/** Prints the answer as it comes. Errors: CommandError with the server's message for a status from 400 on. */
async function ask({ send, key }: Remote, method: string, path: string, body: string | null): Promise<void> {
  const answer = await send(path, {
    method,
    headers: { "x-platform-service-key": key, ...(body === null ? {} : { "content-type": "application/json" }) },
    body,
  });
  if (answer.status >= 400) throw new CommandError(`${answer.status} ${await answer.text()}`.trim());
  let last: number | undefined;
  for await (const chunk of answer.body ?? []) {
    await Bun.write(Bun.stdout, chunk).catch((cause: unknown) => {
      throw outputFailure(cause);
    });
    last = chunk.at(-1) ?? last;
  }
  // A line that a terminal or a pipe of lines reads whole.
  const isText = /json|text/.test(answer.headers.get("content-type") ?? "");
  if (isText && last !== undefined && last !== NEW_LINE) await printAnswer("");
}

const NEW_LINE = 10;

/** Returns the paths of the server's description, up to their first parameter. */
async function pathsOf({ send, key }: Remote, method: string, prefix: string): Promise<string[]> {
  const answer = await send("/swagger/json", { headers: { "x-platform-service-key": key } });
  const document: unknown = answer.ok ? await answer.json() : null;
  const paths = isJsonObject(document) && isJsonObject(document["paths"]) ? document["paths"] : {};
  const known = Object.entries(paths).flatMap(([path, operations]) => {
    if (!isJsonObject(operations) || !Object.hasOwn(operations, method.toLowerCase())) return [];
    const plain = path.replace(/\{.*$/s, "");
    return [prefix.startsWith("/") ? plain : plain.replace(/^\/api\//, "")];
  });
  return [...new Set(known)]
    .filter((path) => path.startsWith(prefix))
    .sort()
    .slice(0, COMPLETIONS_MAX);
}
