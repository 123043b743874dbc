import { Type } from "typebox";
import { nullable, optional } from "../../../kernel/schema/types.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { Reply } from "../../http/reply.ts";
import { Edit, Problem } from "./edits/edit.ts";
import { BODY_MAX_BYTES, EDITS_MAX } from "./limits.ts";
import type { ConfigEditor } from "./service.ts";

const TAG = "Administration";

const Shown = Type.Object({
  file: nullable(Type.String({ description: "Its path; null in a product, whose config is in the executable" })),
  source: nullable(Type.String()),
  writable: Type.Boolean({ description: "Whether edits may be written: under `platform dev`" }),
  revision: nullable(Type.String()),
  running: nullable(
    Type.String({ description: "The revision with which this server has started, under `platform dev`" }),
  ),
  undoable: Type.Integer({ description: "The number of writes that can be undone, one after another" }),
  putBack: nullable(
    Type.Object(
      { at: Type.String(), reason: Type.String() },
      { description: "The last write, if the server did not start with it and the text before was put back" },
    ),
  ),
});

const Data = Type.Object({
  files: Type.Integer({ description: "Database files that were compared" }),
  unfit: Type.Integer({ description: "Those that would not open" }),
  notes: Type.Array(Type.String()),
});

const Preview = Type.Object(
  {
    source: Type.String({ description: "The edited text" }),
    diff: Type.String({
      description: "Unified, with `[hidden]` for texts of secret members; empty where nothing changes",
    }),
    migration: nullable(Type.String({ description: "The SQL of the migrations that were added" })),
    data: nullable(Data),
    problems: Type.Array(Problem, { description: "Why the edited config would not start" }),
    warnings: Type.Array(Type.String(), { description: "Places that a person should look at" }),
  },
  { description: "What the edits make of the config" },
);

const Edits = Type.Object({
  edits: Type.Array(Edit, { minItems: 1, maxItems: EDITS_MAX }),
  revision: optional(Type.String({ description: "The revision that the edits are meant for; any by default" })),
  write: optional(Type.Boolean({ description: "Whether to write the file; false by default" })),
});

/** Declares the endpoints of the config's text, which the root key alone may use. */
export function editorEndpoints(editor: ConfigEditor): readonly Endpoint[] {
  const rootOnly = { tag: TAG, caller: "serviceKey", place: "none", refusesScopedKeys: true } as const;
  const source = endpoint(
    "GET /api/admin/config/source",
    { ...rootOnly, summary: "Get the config's text", answers: { 200: Shown }, errors: [409] },
    ({ query }) => {
      query();
      return editor.source();
    },
  );
  const edits = endpoint(
    "POST /api/admin/config/edits",
    {
      ...rootOnly,
      summary: "Edit the config",
      description:
        "Applies the edits to the text, and shows the result; with `write` it replaces the file, if it holds. Under `platform dev` " +
        "the result is loaded in another process and compared with the stored records; elsewhere `data` is null. What is not " +
        "written in place, such as a table in a variable, is 400 and has to be edited in the file.",
      body: Edits,
      bodyMaxBytes: BODY_MAX_BYTES,
      answers: { 200: Preview },
      errors: [409, 503],
    },
    async ({ body }) => {
      const { edits: asked, revision = null, write } = await body();
      const isWritten = write === true;
      const preview = await editor.edit({ edits: asked, revision, isWritten });
      return isWritten && preview.problems.length > 0 ? new Reply(400, preview) : preview;
    },
  );
  const undo = endpoint(
    "POST /api/admin/config/undo",
    {
      ...rootOnly,
      summary: "Undo the last edit of the config",
      description: "409 where it would lose values, and where the file has changed since.",
      answers: { 200: Preview },
      errors: [409, 503],
    },
    ({ query }) => {
      query();
      return editor.undo();
    },
  );
  return [source, edits, undo];
}
