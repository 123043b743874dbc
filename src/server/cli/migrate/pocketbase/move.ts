import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CommandError } from "../../errors.ts";
import { moveAgain, saveMoved } from "../again/again.ts";
import { againReport } from "../again/report.ts";
import { createRemarks } from "../remarks.ts";
import { isSame } from "../report.ts";
import { accountsOf } from "./accounts.ts";
import { configText } from "./config.ts";
import { sourceTables } from "./contents.ts";
import { loadAll } from "./load.ts";
import { planOf } from "./plan.ts";
import { providersOf } from "./providers.ts";
import { type Conversion, createConversion, movedIds } from "./records.ts";
import { reportText } from "./report.ts";
import { signInRules } from "./sign-in.ts";
import type { PbSource } from "./source.ts";
import { createTranslation } from "./translation/translate.ts";
import { movedViews } from "./views.ts";

const SECRET_MODE = 0o600;

/** Plans the move of a source: the config, the secrets that it reads, and the report. Nothing is written. */
export function planMove(source: PbSource) {
  const remarks = createRemarks();
  const plan = planOf(source, remarks);
  const signIn = signInRules(plan, remarks);
  const providers = plan.users === null ? [] : providersOf(plan.users.collection, remarks);
  const translation = createTranslation(plan, remarks);
  const { text, variables } = configText({
    source,
    plan,
    providers,
    translation,
    views: movedViews(plan, translation, remarks),
    signIn,
    remarks,
  });
  const accounts = () => accountsOf(source, plan, { providers, isKeptOut: signIn.isKeptOut, remarks });
  return {
    text,
    variables,
    plan,
    accounts,
    remarks,
    report: () => reportText({ source, plan, comparisons: null, remarks }),
  };
}

/** Moves a source into a new directory. Errors: CommandError for one that is filled. Returns whether all is as it was. */
export async function move(source: PbSource, directory: string): Promise<boolean> {
  if (existsSync(directory) && readdirSync(directory).length > 0) {
    throw new CommandError(`${directory} is not empty: name a new folder`);
  }
  const { text, variables, plan, accounts, remarks } = planMove(source);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "platform.config.ts"), text, { flag: "wx" });
  if (variables.size > 0) {
    const lines = [...variables].map(([name, value]) => `${name}=${JSON.stringify(value)}\n`);
    writeFileSync(join(directory, ".env"), lines.join(""), { flag: "wx", mode: SECRET_MODE });
  }
  const { comparisons, contents } = await loadAll({ source, plan, accounts: accounts(), directory, remarks });
  await saveMoved(directory, text, contents);
  writeFileSync(join(directory, "report.md"), reportText({ source, plan, comparisons, remarks }));
  return isSame(comparisons);
}

/** Takes over what has changed in a source since it was moved. Errors: those of `moveAgain`. Returns whether the rest is as it was. */
export async function moveOnceMore(source: PbSource, directory: string, now: number): Promise<boolean> {
  const { text, plan, accounts, remarks } = planMove(source);
  let conversion: Conversion | null = null;
  const again = await moveAgain({
    directory,
    config: text,
    accounts: [...accounts()],
    files: null,
    now,
    remarks,
    tablesWith: (isHere) => {
      const ids = movedIds(source, plan, { has: isHere.account }, remarks);
      const kept = new Map(
        [...ids].map(([table, all]) => [table, new Set([...all].filter((id) => isHere.record(table, id)))]),
      );
      conversion = createConversion(source, ids, kept);
      return sourceTables(source, plan, conversion);
    },
  });
  // Assigned by the call above, which TypeScript does not see.
  (conversion as Conversion | null)?.tellDangling(remarks);
  const report = againReport({ title: "# Moved from PocketBase again", again, config: text, remarks });
  writeFileSync(join(directory, "report.md"), report);
  return isSame(again.comparisons);
}
