import { refuseScopedKey, requireAnyServiceKey } from "../access/service-key-right.ts";
import { unauthorized } from "../kernel/errors.ts";
import type { JsonObject, JsonValue } from "../kernel/json.ts";
import type { MaybePromise } from "../kernel/maybe-promise.ts";
import { isBodyAbsent, readJson, readJsonObject } from "./body.ts";
import type { EndpointParts } from "./endpoint-parts.ts";
import { Exchange } from "./exchange.ts";

/** The exchange of a declared endpoint. */
export class EndpointExchange extends Exchange {
  readonly #parts: EndpointParts;

  constructor(parts: EndpointParts, ...rest: ConstructorParameters<typeof Exchange>) {
    super(...rest);
    this.#parts = parts;
  }

  get query(): () => Record<string, unknown> {
    return () => this.#parts.query.parse(this.parsedQuery());
  }

  get peek(): (name: string) => string | null {
    return (name) => this.parsedQuery().peek(name);
  }

  get queryText(): () => string {
    return () => this.parsedQuery().text;
  }

  get body(): () => Promise<unknown> {
    return () => this.#readBody();
  }

  protected handle(): MaybePromise<unknown> {
    const { caller, handle, missingKeyStatus, refusesScopedKeys } = this.#parts;
    if (refusesScopedKeys) refuseScopedKey(this.principal);
    if (caller === "user" && this.principal.kind !== "user") throw unauthorized();
    if (caller === "serviceKey") requireAnyServiceKey(this.principal, missingKeyStatus);
    // The declaration's types say what its handler takes; `EndpointParts` is made from the same declaration.
    return handle(this as never);
  }

  async #readBody(): Promise<unknown> {
    const { body } = this.#parts;
    if (body === null) throw new Error(`${this.request.method} ${this.request.url} declares no JSON body`);
    return body.parser.parse(await this.#readJson(body));
  }

  #readJson({ isObject, isOptional }: { isObject: boolean; isOptional: boolean }): Promise<JsonValue | JsonObject> {
    if (isOptional && isBodyAbsent(this.request)) {
      this.parsedQuery().refuseUnknown();
      return Promise.resolve({});
    }
    return isObject ? readJsonObject(this.request, this.bodyRules()) : readJson(this.request, this.bodyRules());
  }
}
