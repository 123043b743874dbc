import { editorEndpoints } from "./endpoints.ts";
import { ConfigEditor } from "./service.ts";

export { noteStarted, putBackFailedEdit } from "./history.ts";
export type { ConfigFile, Tried } from "./service.ts";

export type ConfigEditorArea = ReturnType<typeof createConfigEditorArea>;

/** Creates the area that edits the config's file. Rules: SPEC.md. */
export const createConfigEditorArea = (deps: ConstructorParameters<typeof ConfigEditor>[0]) => ({
  endpoints: editorEndpoints(new ConfigEditor(deps)),
});
