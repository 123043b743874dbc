import { afterAll } from "bun:test";
import { endEverything } from "./children.ts";

afterAll(endEverything);
process.on("exit", endEverything);
