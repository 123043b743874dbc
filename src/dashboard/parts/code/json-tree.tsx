import "./json-tree.css";
import { memo, useEffect, useRef, useState } from "react";
import { IconChevronRight } from "../icons.tsx";

/** Number of members that are shown before the list is expanded. */
const MEMBERS_SHOWN = 100;
/** Branches with more members are collapsed initially. */
const MEMBERS_OPEN = 40;
const TEXT_CHARACTERS = 500;

/** Tree of a value, with collapsible branches; `openLevels` of them are open initially. Parts that change flash. */
export function JsonTree({ label, value, openLevels = 1 }: { label: string; value: object; openLevels?: number }) {
  const isEmpty = Object.keys(value).length === 0;
  return (
    <div className="json-tree" role="group" aria-label={label}>
      {isEmpty ? <span className="json-bracket">{Array.isArray(value) ? "[ ]" : "{ }"}</span> : null}
      {isEmpty ? null : <Members value={value} openLevels={openLevels} />}
    </div>
  );
}

const Members = memo(function Members({ value, openLevels }: { value: object; openLevels: number }) {
  const [shown, setShown] = useState(MEMBERS_SHOWN);
  const entries = Object.entries(value);
  const known = useRef<ReadonlySet<string> | null>(null);
  const before = known.current;
  useEffect(() => {
    known.current = new Set(Object.keys(value));
  }, [value]);
  const rest = entries.length - shown;
  return (
    <ul>
      {entries.slice(0, shown).map(([name, member]) => (
        <li key={name}>
          <Member name={name} value={member} openLevels={openLevels} isNew={before !== null && !before.has(name)} />
        </li>
      ))}
      {rest <= 0 ? null : (
        <li>
          <button type="button" className="json-more" onClick={() => setShown(shown + MEMBERS_SHOWN)}>
            {rest} more
          </button>
        </li>
      )}
    </ul>
  );
});

interface MemberProps<Value = unknown> {
  name: string;
  value: Value;
  openLevels: number;
}

function Member({ name, value, openLevels, isNew }: MemberProps & { isNew: boolean }) {
  if (typeof value === "object" && value !== null && Object.keys(value).length > 0) {
    return <Branch name={name} value={value} openLevels={openLevels} />;
  }
  return (
    <span className="json-line">
      <span className="json-name">{name}</span> <Leaf value={value} isNew={isNew} />
    </span>
  );
}

function Branch({ name, value, openLevels }: MemberProps<object>) {
  const count = Object.keys(value).length;
  const [isOpen, setIsOpen] = useState(openLevels > 0 && count <= MEMBERS_OPEN);
  return (
    <>
      <button type="button" className="json-branch" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
        <IconChevronRight size={13} aria-hidden />
        <span className="json-name">{name}</span>{" "}
        <span className="json-bracket">{Array.isArray(value) ? `[${count}]` : `{${count}}`}</span>
      </button>
      {isOpen ? <Members value={value} openLevels={openLevels - 1} /> : null}
    </>
  );
}

function Leaf({ value, isNew }: { value: unknown; isNew: boolean }) {
  const text = typeof value === "object" && value !== null ? (Array.isArray(value) ? "[ ]" : "{ }") : String(value);
  const last = useRef({ text, changes: isNew ? 1 : 0 });
  if (last.current.text !== text) last.current = { text, changes: last.current.changes + 1 };
  const { changes } = last.current;
  const kind = value === null ? "null" : typeof value;
  return (
    // A new element for each change restarts the flash.
    <span key={changes} className={`json-${kind} ${changes > 0 ? "json-changed" : ""}`}>
      {text.length > TEXT_CHARACTERS ? `${text.slice(0, TEXT_CHARACTERS)}…` : text}
    </span>
  );
}
