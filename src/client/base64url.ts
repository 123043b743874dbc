export const bytesOf = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(textOf(text), (character) => character.charCodeAt(0));

/** Decodes base64url to characters up to U+00FF, one for each byte. Throws if the text is not base64url. */
export const textOf = (text: string): string => atob(text.replace(/-/g, "+").replace(/_/g, "/"));

/** Encodes base64url without padding. */
export const encoded = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=+$/, "");
