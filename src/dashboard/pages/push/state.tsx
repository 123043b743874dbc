import { Select, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { PushLog, PushPlatform } from "../../../client/admin/push.ts";
import { server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";

/** State of the page, all of it in its address. */
export interface PushState {
  view: View;
  user: string;
  token: string;
  platform: PushPlatform;
  topic: string;
  status: PushLog["status"];
  /** Prefix of topics. */
  q: string;
  /** Token of the open device. */
  device: string;
  /** Recipient of the open test message. */
  to: Recipient;
}

export type View = "devices" | "topics" | "log";

/** Recipient: `user:ID`, `token:PLATFORM:TOKEN`, `topic:NAME`; empty: none yet. */
export type Recipient = string;

export const PLATFORMS: readonly PushPlatform[] = ["android", "ios", "web"];
export const STATUSES: readonly PushLog["status"][] = ["sent", "failed", "removed"];

export type Change = (
  next: { [Name in keyof PushState]?: PushState[Name] | undefined },
  options?: { replace?: boolean },
) => void;

const FOUND_MAX = 7;
const TYPING_MS = 200;

interface UserSelectProps {
  label: string;
  isLabelHidden?: boolean;
  /** Id of the user; empty: none. */
  user: string;
  onChange(user: string): void;
}

/** Selects a user by address or name; only by id for keys that may not look up users. */
export function UserSelect(props: UserSelectProps) {
  const { may } = useRights();
  const { label, isLabelHidden = false, user, onChange } = props;
  if (may("auth", "admin", "*", "read")) return <Found {...props} />;
  return (
    <TextInput
      {...(isLabelHidden ? { "aria-label": label } : { label })}
      placeholder="Id of a user"
      value={user}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

function Found({ label, isLabelHidden = false, user, onChange }: UserSelectProps) {
  const [text, setText] = useState("");
  const [query] = useDebouncedValue(text, TYPING_MS);
  const users = useQuery({
    queryKey: ["users", "select", query],
    queryFn: () => server.users.list({ limit: FOUND_MAX, ...(query === "" ? {} : { q: query }) }),
  });
  const chosen = useQuery({
    queryKey: ["users", user, "name"],
    enabled: user !== "",
    queryFn: () => server.users.get(user),
  });
  const found = (users.data?.items ?? []).map(({ id, email, displayName }) => ({
    value: id,
    label: email ?? displayName ?? id,
  }));
  const isListed = user === "" || found.some(({ value }) => value === user);
  const data = isListed ? found : [{ value: user, label: chosen.data?.email ?? user }, ...found];
  return (
    <Select
      {...(isLabelHidden ? { "aria-label": label } : { label })}
      placeholder="Email, name or id of a user"
      searchable
      clearable
      clearButtonProps={{ "aria-label": `Clear ${label}` }}
      data={data}
      // The server has filtered the options, also by fields that are not shown.
      filter={({ options }) => options}
      nothingFoundMessage={users.error === null ? "Nobody has this name" : "Users cannot be looked up"}
      searchValue={text}
      onSearchChange={setText}
      value={user === "" ? null : user}
      onChange={(next) => onChange(next ?? "")}
      {...(isLabelHidden ? { w: { base: "100%", sm: 280 } } : {})}
    />
  );
}
