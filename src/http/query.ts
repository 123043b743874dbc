import { badRequest, type FieldProblems, noProblems } from "../kernel/errors.ts";
import { UNKNOWN_NAMED_MAX } from "./limits.ts";

/** The parameters that an endpoint declares; null: any, as for an OAuth callback. */
export type KnownParameters = ReadonlySet<string> | null;

/** The query of a request, parsed at the first access: many requests have none. */
export class Query {
  /** The query as it was sent, without the question mark. */
  readonly text: string;
  readonly #known: KnownParameters;
  #parameters: URLSearchParams | null = null;
  #isChecked = false;

  constructor(text: string, known: KnownParameters = null) {
    this.text = text;
    this.#known = known;
  }

  /** null when absent; of a repeated parameter the first value. Errors: 400 as `refuseUnknown`. */
  get(name: string): string | null {
    this.refuseUnknown();
    return this.peek(name);
  }

  /** Like `get`, without a check: for a parameter that decides which rights are needed. */
  peek(name: string): string | null {
    return this.text === "" ? null : this.#parse().get(name);
  }

  /** Errors: 400 `unknown_field` for each parameter that is not declared. [HT110] */
  refuseUnknown(): void {
    if (this.#isChecked || this.text === "" || this.#known === null) return;
    const problems: FieldProblems = noProblems();
    let unknownCount = 0;
    for (const name of this.#parse().keys()) {
      if (this.#known.has(name) || name in problems || unknownCount === UNKNOWN_NAMED_MAX) continue;
      problems[name] = { code: "unknown_field", message: `${name} is not a query parameter of this request` };
      unknownCount++;
    }
    if (unknownCount > 0) {
      const [first] = Object.values(problems);
      throw badRequest(
        unknownCount === 1 && first !== undefined ? first.message : "Several query parameters are unknown",
        problems,
      );
    }
    this.#isChecked = true;
  }

  #parse(): URLSearchParams {
    this.#parameters ??= new URLSearchParams(this.text);
    return this.#parameters;
  }
}

const EMPTY = new Query("");

export function queryOf(request: Request, known: KnownParameters): Query {
  const start = request.url.indexOf("?");
  if (start < 0) return EMPTY;
  const end = request.url.indexOf("#", start);
  return new Query(request.url.slice(start + 1, end < 0 ? undefined : end), known);
}
