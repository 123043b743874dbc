import "./diff.css";

const KINDS: Readonly<Record<string, string>> = { "+": "diff-added", "-": "diff-removed", "@": "diff-place" };

/** A unified diff without its header, line by line, without the indentation that all lines have. */
export function Diff({ label, text }: { label: string; text: string }) {
  const lines = text.split("\n").filter((line) => line !== "" && !/^(?:---|\+\+\+|\\) /.test(line));
  const indents = lines.flatMap((line) => (/^[ +-]\s*\S/.test(line) ? [line.slice(1).search(/\S/)] : []));
  const indent = Math.min(...indents);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users scroll it
    <section className="diff" aria-label={label} tabIndex={0}>
      {lines.map((line, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name, and never move
        <div key={index} className={KINDS[line[0] ?? ""] ?? ""}>
          {line.startsWith("@") ? "…" : `${line[0]} ${line.slice(1 + indent)}`}
        </div>
      ))}
    </section>
  );
}
