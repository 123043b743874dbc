import "./code.css";
import { json } from "@codemirror/lang-json";
import { defaultHighlightStyle, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, type Extension, Prec } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";
import { useEffect, useRef } from "react";

/** Colours of the page's light or dark mode: see code.css. */
const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
  { tag: [tags.comment, tags.lineComment, tags.blockComment], color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.propertyName, tags.standard(tags.name)], color: "var(--code-name)" },
]);

export const jsonCode: Extension = json();

interface CodeEditorProps {
  /** Accessible name. */
  label: string;
  value: string;
  onChange(value: string): void;
  /** Language, marks and other extensions of the editor. */
  extensions: Extension;
  /** Called for Ctrl or Cmd with Enter. */
  onSubmit?: () => void;
  isReadOnly?: boolean;
  /** Called with the editor once it exists. */
  onView?: (view: EditorView) => void;
}

/** Code editor. Tab leaves it, as in every other field. */
export function CodeEditor({
  label,
  value,
  onChange,
  extensions,
  onSubmit,
  isReadOnly = false,
  onView,
}: CodeEditorProps) {
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const changing = useRef(new Compartment()).current;
  const latest = useRef({ onChange, onSubmit, onView });
  latest.current = { onChange, onSubmit, onView };
  const changeable: Extension = [
    extensions,
    EditorView.editable.of(!isReadOnly),
    // Keyboard users can scroll a read-only text, too.
    EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": String(isReadOnly), tabindex: "0" }),
  ];
  const first = useRef({ value, changeable });

  useEffect(() => {
    const submit = (): boolean => {
      latest.current.onSubmit?.();
      return latest.current.onSubmit !== undefined;
    };
    const editor = new EditorView({
      doc: first.current.value,
      ...(box.current === null ? {} : { parent: box.current }),
      extensions: [
        Prec.highest(keymap.of([{ key: "Mod-Enter", run: submit }])),
        basicSetup,
        syntaxHighlighting(colours),
        syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
        EditorView.lineWrapping,
        EditorView.updateListener.of((update) => {
          if (update.docChanged) latest.current.onChange(update.state.doc.toString());
        }),
        changing.of(first.current.changeable),
      ],
    });
    view.current = editor;
    latest.current.onView?.(editor);
    return () => editor.destroy();
  }, [changing]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `changeable` is made of these
  useEffect(() => {
    view.current?.dispatch({ effects: changing.reconfigure(changeable) });
  }, [extensions, isReadOnly, label]);

  useEffect(() => {
    const editor = view.current;
    if (editor === null || editor.state.doc.toString() === value) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [value]);

  return <div ref={box} className="code-editor" />;
}
