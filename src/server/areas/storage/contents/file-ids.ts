/** Whether the server gives files such names. What else is where it keeps files is not its own, and no sweep removes it. */
export const isFileId = (name: string): boolean => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(name);
