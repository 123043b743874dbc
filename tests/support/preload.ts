import { afterAll, setDefaultTimeout } from "bun:test";
import { endEverything } from "./children.ts";

// Bun kills the processes of a test that times out. The limit is generous, so that one slow moment of a busy machine does not
// fail every test of a file.
const TEST_TIMEOUT_MS = 30_000;

setDefaultTimeout(TEST_TIMEOUT_MS);
afterAll(endEverything);
process.on("exit", endEverything);
