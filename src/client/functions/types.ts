import type { Treaty } from "@elysiajs/eden/treaty2";
import type { AnyElysia } from "elysia";

type Mounted<Api> = Api extends { api: { functions: infer Functions } } ? Functions : unknown;

/** The routes of a config as Eden Treaty has them. */
export type FunctionsOf<Routes> =
  Awaited<Routes> extends infer Api
    ? unknown extends Api
      ? unknown
      : Api extends AnyElysia
        ? Mounted<Treaty.Create<Api>>
        : unknown
    : unknown;
