import { TransformDecodeError } from "@sinclair/typebox/value";
import { Cookie, ElysiaFile } from "elysia";

/** Where in its part of the request a value is that could not be decoded, by what was thrown about it: `/list/1`. */
const places = new WeakMap<object, string>();
const causes = new WeakMap<object, unknown>();

/** Empty: it is not about one value. */
export const placeOf = (cause: object): string => places.get(cause) ?? "";

/**
 * Mends what Elysia does with errors of decoding. It knows classes by their names, which the build of the executable shortens: what could
 * not be decoded would come to the handler as it was sent, without an error. And it throws the cause of an error instead of the
 * error, which alone says where the value is.
 */
export function mendElysia(): void {
  for (const [name, known] of Object.entries({ TransformDecodeError, ElysiaFile, Cookie })) {
    Object.defineProperty(known, "name", { value: name, configurable: true });
  }
  // TypeBox assigns it in the constructor, after the path.
  Object.defineProperty(TransformDecodeError.prototype, "error", {
    configurable: true,
    get(this: TransformDecodeError) {
      return causes.get(this);
    },
    set(this: TransformDecodeError, given: unknown) {
      // Of a list within a text there is one error for the list, whose cause is that for the entry.
      const inner = given instanceof TransformDecodeError ? given.error : null;
      const cause = inner ?? given;
      causes.set(this, cause);
      if (typeof cause !== "object" || cause === null) return;
      // A transformation may throw the same error each time.
      places.set(cause, inner === null ? this.path : `${this.path}${placeOf(cause)}`);
    },
  });
}
