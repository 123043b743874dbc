import { closestName } from "../../../kernel/closest-name.ts";
import { readGuide } from "../../areas/site/guide/source.ts";
import { declareCommand } from "../command.ts";
import { UsageError } from "../errors.ts";
import { printAnswer } from "../output.ts";

const FIRST_PAGE = "README";

export const docsCommand = declareCommand({
  meta: { name: "docs", description: "Prints a page of the guide; platform dev serves it at /docs" },
  args: {
    page: {
      type: "positional",
      description: "The page: tables, deploy/nginx …; by default the list of all",
      required: false,
      default: FIRST_PAGE,
    },
  },
  async run({ args }) {
    const guide = await readGuide();
    const name = args.page.replace(/\.md$/, "");
    const text = guide.get(`${name}.md`);
    if (text === undefined) {
      const names = [...guide.keys()].map((page) => page.replace(/\.md$/, ""));
      throw new UsageError(`the guide has no page "${name}"${closestName(name, names)}; it has ${names.join(", ")}`);
    }
    await printAnswer(process.stdout.isTTY ? Bun.markdown.ansi(text) : text.trimEnd());
    return 0;
  },
});
