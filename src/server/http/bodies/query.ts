import { type AppError, badRequest, type FieldCode, type FieldProblems, noProblems } from "../../../kernel/errors.ts";
import { UNKNOWN_NAMED_MAX } from "../limits.ts";

/** The parameters that an endpoint declares, and whether it takes others, as an OAuth callback does. */
export interface KnownParameters {
  readonly names: ReadonlySet<string>;
  readonly takesOthers: boolean;
}

const ANY: KnownParameters = { names: new Set(), takesOthers: true };

/** The query of a request, parsed at the first access: many requests have none. */
export class Query {
  /** The raw query, without the question mark. */
  readonly text: string;
  readonly #known: KnownParameters;
  #parameters: ReadonlyMap<string, string> | null = null;
  readonly #repeated: string[] = [];
  #isChecked = false;

  constructor(text: string, known: KnownParameters = ANY) {
    this.text = text;
    this.#known = known;
  }

  /** The parameters by name. Errors: those of `assertValid`. */
  get sent(): ReadonlyMap<string, string> {
    this.assertValid();
    return this.#parse();
  }

  /**
   * Returns a parameter without validation, for one that decides which rights are needed; null when absent, the first value when
   * repeated.
   */
  peek(name: string): string | null {
    return this.#parse().get(name) ?? null;
  }

  /**
   * Validates the names. Errors: 400 that names each parameter that is undeclared (`unknown_field`) or repeated (`invalid_value`):
   * of two conditions, one would be ignored. Where others are allowed, these are not looked at. [HT110] [HT140]
   */
  assertValid(): void {
    if (this.#isChecked || this.text === "") return;
    const { names, takesOthers } = this.#known;
    const sent = this.#parse();
    const unknown = takesOthers ? [] : [...sent.keys()].filter((name) => !names.has(name));
    if (unknown.length + this.#repeated.length > 0) throw this.#refusal(unknown);
    this.#isChecked = true;
  }

  #mayNotRepeat(name: string): boolean {
    return !this.#known.takesOthers || this.#known.names.has(name);
  }

  #refusal(unknown: readonly string[]): AppError {
    const problems: FieldProblems = noProblems();
    const name = (one: string, code: FieldCode, what: string): void => {
      if (Object.keys(problems).length < UNKNOWN_NAMED_MAX) problems[one] ??= { code, message: `${one} ${what}` };
    };
    for (const sent of unknown) name(sent, "unknown_field", "is not a query parameter of this request");
    for (const one of this.#repeated)
      name(one, "invalid_value", "is a query parameter that can be sent once, and was repeated");
    const [first, ...others] = Object.values(problems);
    const message = others.length === 0 ? first?.message : undefined;
    return badRequest(message ?? "Several query parameters are unknown or repeated", problems);
  }

  #parse(): ReadonlyMap<string, string> {
    if (this.#parameters !== null) return this.#parameters;
    const parameters = new Map<string, string>();
    this.#parameters = parameters;
    for (const part of this.text === "" ? [] : this.text.split("&")) {
      if (part === "") continue;
      const end = part.indexOf("=");
      const name = decoded(end < 0 ? part : part.slice(0, end));
      if (!parameters.has(name)) parameters.set(name, end < 0 ? "" : decoded(part.slice(end + 1)));
      else if (this.#repeated.length < UNKNOWN_NAMED_MAX && this.#mayNotRepeat(name)) this.#repeated.push(name);
    }
    return parameters;
  }
}

/**
 * Decodes like `URLSearchParams`, which takes several times as long: most texts have nothing to decode, and nearly all others are
 * valid.
 */
function decoded(text: string): string {
  const spaced = text.includes("+") ? text.replaceAll("+", " ") : text;
  if (!spaced.includes("%")) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return new URLSearchParams(`x=${text}`).get("x") ?? "";
  }
}

const EMPTY = new Query("");

export function queryOf(request: Request, known: KnownParameters): Query {
  const start = request.url.indexOf("?");
  if (start < 0) return EMPTY;
  const end = request.url.indexOf("#", start);
  return new Query(request.url.slice(start + 1, end < 0 ? undefined : end), known);
}
