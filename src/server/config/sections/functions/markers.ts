import type { RouteAccess } from "./routes.ts";

/** The symbols under which a hook carries the option that it stands for. */
export const ACCESS = Symbol("access");
export const TIMEOUT = Symbol("timeout");

/**
 * Makes an option of a route a hook of Elysia: guards and groups then pass it on to their routes like any hook. The server removes
 * it; if a route is ever created without that step, the hook refuses its requests.
 */
function marker(name: symbol, value: unknown): { transform: () => never } {
  const transform = (): never => {
    throw new Error("a route is served without its access rule");
  };
  return { transform: Object.assign(transform, { [name]: value }) };
}

/** The options of routes as Elysia macros. */
export const MARKERS = {
  access: (access: RouteAccess) => marker(ACCESS, access),
  timeout: (seconds: number) => marker(TIMEOUT, seconds),
};

/** A method of Elysia that takes options of routes, an object of the config's, among its arguments. */
type TakingOptions = (this: unknown, ...given: unknown[]) => unknown;

interface WithMacros {
  add: TakingOptions;
  group: TakingOptions;
  guard: TakingOptions;
  extender: { macro: Record<string, unknown> };
  applyMacro(hook: object, appliable?: object, state?: object): void;
}

/**
 * Registers the options of routes with Elysia instances that a config or a plugin creates itself. Otherwise their guards would
 * ignore `access`, and the guarded routes would be open to every signed-in user.
 */
export function knowOptions(prototype: object): void {
  const known = prototype as WithMacros;
  const { applyMacro } = known;
  known.applyMacro = function (this: WithMacros, hook, appliable = hook, state = {}) {
    const { extender } = this;
    for (const [name, macro] of Object.entries(MARKERS)) {
      if (name in appliable && !(name in extender.macro)) extender.macro = { ...extender.macro, [name]: macro };
    }
    applyMacro.call(this, hook, appliable, state);
  };
  // Elysia replaces an option in the given object with its hook. Several routes may share that object, and one that adds a hook of
  // its own to a copy of it would lose the option.
  for (const name of ["add", "group", "guard"] as const) {
    const taking = known[name];
    known[name] = function (...given) {
      return taking.apply(this, given.map(copied));
    };
  }
}

const copied = (given: unknown): unknown =>
  typeof given === "object" && given !== null && Object.getPrototypeOf(given) === Object.prototype
    ? { ...given }
    : given;
