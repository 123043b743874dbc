// One file: a page that uploads also lists, reads or deletes.
export { createOperations } from "./operations.ts";
export { upload } from "./upload.ts";
