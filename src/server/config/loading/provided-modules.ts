import * as elysia from "elysia";
import * as compose from "elysia/compose";
import * as context from "elysia/context";
import * as cookies from "elysia/cookies";
import * as error from "elysia/error";
import * as parseQuery from "elysia/parse-query";
import * as schema from "elysia/schema";
import * as sucrose from "elysia/sucrose";
import * as trace from "elysia/trace";
import * as typeSystem from "elysia/type-system";
import * as typeFormat from "elysia/type-system/format";
import * as typeUtils from "elysia/type-system/utils";
import * as types from "elysia/types";
import * as env from "elysia/universal/env";
import * as file from "elysia/universal/file";
import * as utils from "elysia/utils";
import * as ws from "elysia/ws";
import { knowOptions } from "../sections/functions/markers.ts";
import type { ProvidedModules } from "./product.ts";

/** The exports of `platform` inside a config. */
export type PlatformModule = Readonly<Record<string, unknown>>;

/**
 * The Elysia that serves. A plugin installed beside the config must not load a second one, whose instances this one would not
 * recognise.
 */
const ELYSIA: ProvidedModules = {
  elysia,
  "elysia/compose": compose,
  "elysia/context": context,
  "elysia/cookies": cookies,
  "elysia/error": error,
  "elysia/parse-query": parseQuery,
  "elysia/schema": schema,
  "elysia/sucrose": sucrose,
  "elysia/trace": trace,
  "elysia/type-system": typeSystem,
  "elysia/type-system/format": typeFormat,
  "elysia/type-system/utils": typeUtils,
  "elysia/types": types,
  "elysia/universal/env": env,
  "elysia/universal/file": file,
  "elysia/utils": utils,
  "elysia/ws": ws,
};

let areOptionsKnown = false;

/** Returns the modules that a config imports from this program, by name: a class of one is the same class in the config. */
export function providedModules(platformModule: PlatformModule): ProvidedModules {
  if (!areOptionsKnown) knowOptions(elysia.Elysia.prototype);
  areOptionsKnown = true;
  return { platform: platformModule, ...ELYSIA };
}

let isProvided = false;

/**
 * Makes `import` and `require` of "platform" and "elysia" resolve to the modules of this program, for files in every directory and
 * whatever is installed there.
 */
export function provideModules(platformModule: PlatformModule): void {
  if (isProvided) return;
  isProvided = true;
  Bun.plugin({
    name: "platform",
    setup(build) {
      for (const [name, exports] of Object.entries(providedModules(platformModule))) {
        // Synchronous: `require` cannot await.
        build.module(name, () => ({ exports: { ...exports }, loader: "object" }));
      }
    },
  });
}
