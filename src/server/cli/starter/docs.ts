import { Command } from "@commander-js/extra-typings";
import { closestName } from "../../../kernel/closest-name.ts";
import { readGuide } from "../../areas/site/guide/source.ts";
import { UsageError } from "../errors.ts";
import { printAnswer } from "../output.ts";

const FIRST_PAGE = "README";

export const docsCommand = new Command("docs")
  .description("Prints a page of the guide; platform dev serves it at /docs")
  .argument("[PAGE]", "The page: tables, deploy/nginx …; README lists all", FIRST_PAGE)
  .action(async (page) => {
    const guide = await readGuide();
    const name = page.replace(/\.md$/, "");
    const text = guide.get(`${name}.md`);
    if (text === undefined) {
      const names = [...guide.keys()].map((file) => file.replace(/\.md$/, ""));
      throw new UsageError(`the guide has no page "${name}"${closestName(name, names)}; it has ${names.join(", ")}`);
    }
    await printAnswer(process.stdout.isTTY ? Bun.markdown.ansi(text) : text.trimEnd());
  });
