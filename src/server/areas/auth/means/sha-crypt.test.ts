import { expect, test } from "bun:test";
import { shaCryptOf, shaCryptSteps } from "./sha-crypt.ts";

function cryptOf(password: string, encoded: string): string {
  const crypt = shaCryptOf(encoded);
  if (crypt === null) throw new Error("no hash of SHA-crypt");
  const steps = shaCryptSteps(password, crypt);
  for (let step = steps.next(); ; step = steps.next()) if (step.done === true) return step.value;
}

test.skipIf(Bun.which("openssl") === null)(
  "[US387] SHA-crypt is what openssl makes, for passwords and salts of every length",
  () => {
    for (const kind of ["5", "6"]) {
      for (let length = 0; length < 70; length += 3) {
        const [password, salt] = [`${"pä".repeat(length)}x`, "salt./0123456789".slice(0, 1 + (length % 16))];
        const rounds = length % 2 === 0 ? "rounds=1500$" : "";
        const { stdout } = Bun.spawnSync(["openssl", "passwd", `-${kind}`, "-salt", rounds + salt, password]);
        const encoded = stdout.toString().trim();
        expect(`${encoded.slice(0, encoded.lastIndexOf("$") + 1)}${cryptOf(password, encoded)}`).toBe(encoded);
      }
    }
  },
);
