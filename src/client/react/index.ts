"use client";
// Public exports of "platform/react".
export { AccountButton, type AccountButtonProps, SignedIn, SignedOut } from "./account.ts";
export { type LiveResult, type RecordResult, useLive, useRecord, useSearch } from "./live.ts";
export { type PresenceResult, usePresence } from "./presence.ts";
export { type AuthResult, PlatformProvider, useAuth, useClient, useUser } from "./provider.ts";
export { type RoomResult, useRoom } from "./room.ts";
export { type SaveResult, type UploadResult, useSave, useUpload } from "./upload.ts";
