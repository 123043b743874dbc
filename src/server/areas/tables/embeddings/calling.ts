import type { Clock } from "../../../../kernel/clock.ts";
import { within } from "../../../../kernel/time/deadline.ts";
import type { AppAccess } from "../../../config/app/index.ts";
import { DIMENSIONS_MAX } from "../limits.ts";
import type { EmbeddingModel } from "../model/model.ts";

/**
 * Calls the function of the config for texts. Returns each vector as 32-bit numbers of length 1, whose distances order as their angles do.
 * Errors: those of the function; a timeout; what is wrong with an answer.
 */
export async function embedTexts(
  { with: work }: Pick<EmbeddingModel, "with">,
  texts: readonly string[],
  { app, clock, timeoutMs }: { app: AppAccess; clock: Clock; timeoutMs: number },
): Promise<Uint8Array[]> {
  const called = Promise.resolve().then(() => work(app, [...texts]));
  const answer: unknown = await within(clock, timeoutMs, called);
  if (!Array.isArray(answer) || answer.length !== texts.length) {
    const got = Array.isArray(answer) ? `${answer.length} vectors` : typeof answer;
    throw new Error(`embed.with must return a vector for each of ${texts.length} texts, got ${got}`);
  }
  const vectors = answer.map(unitVector);
  const [first] = vectors;
  const other = vectors.findIndex(({ byteLength }) => byteLength !== first?.byteLength);
  if (other >= 0) throw new Error(`embed.with must return vectors of one length, and the vector ${other} has another`);
  return vectors;
}

function unitVector(values: unknown, index: number): Uint8Array {
  const name = `the vector ${index} of embed.with`;
  // Typed arrays are lists too.
  const list = Array.isArray(values) || ArrayBuffer.isView(values) ? (values as ArrayLike<unknown>) : null;
  if (list === null || list.length === 0 || list.length > DIMENSIONS_MAX) {
    throw new Error(`${name} must be a list of 1 to ${DIMENSIONS_MAX} numbers, got ${list?.length ?? typeof values}`);
  }
  let square = 0;
  for (let at = 0; at < list.length; at++) {
    const value = list[at];
    if (typeof value !== "number" || !Number.isFinite(value))
      throw new Error(`${name} must have finite numbers at ${at}`);
    square += value * value;
  }
  const length = Math.sqrt(square);
  if (!(length > 0 && Number.isFinite(length))) {
    throw new Error(`${name} must have a direction: not all zeros, and no numbers too large to square`);
  }
  // Checked above.
  return new Uint8Array(Float32Array.from(list as ArrayLike<number>, (value) => value / length).buffer);
}
