import { Alert, Button, Drawer, Group, JsonInput, Select, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type SyntheticEvent, useState } from "react";
import type { PushMessage } from "../../../client/admin/push.ts";
import { messageOf, PlatformError, queries, server } from "../../api/server.ts";
import { parseJson } from "../../parts/json.tsx";
import { Problem } from "../../parts/states.tsx";
import { type Change, PLATFORMS, type Recipient, UserSelect } from "./state.tsx";

const KINDS = [
  { value: "user", label: "A user" },
  { value: "token", label: "A device, by its token" },
  { value: "topic", label: "A topic" },
];

/** Splits `user:ID` into its kind and the rest. */
function parse(to: Recipient): { kind: string; name: string; platform: string } {
  const [kind = "", ...rest] = to.split(":");
  if (kind !== "token") return { kind: kind === "topic" ? kind : "user", name: rest.join(":"), platform: "android" };
  return { kind, name: rest.slice(1).join(":"), platform: rest[0] ?? "android" };
}

async function send({ kind, name, platform }: ReturnType<typeof parse>, message: PushMessage): Promise<string> {
  if (kind === "topic") {
    await server.push.sendToTopic(name, message);
    return "The message is queued; the log shows what becomes of it.";
  }
  const { sent, failed } =
    kind === "user"
      ? await server.push.send(name, message)
      : await server.push.sendToToken(name, message, { platform: PLATFORMS.find((one) => one === platform) ?? "web" });
  return failed === 0
    ? `Sent to ${sent === 1 ? "one device" : `${sent} devices`}.`
    : `Sent to ${sent}, failed for ${failed}; the log says why.`;
}

interface RecipientFieldsProps {
  recipient: ReturnType<typeof parse>;
  edit(next: Partial<ReturnType<typeof parse>>): void;
  fields: PlatformError["fields"];
}

/** Fields for the recipient of the message. */
function RecipientFields({ recipient, edit, fields }: RecipientFieldsProps) {
  return (
    <>
      <Select
        label="To"
        data={KINDS}
        value={recipient.kind}
        allowDeselect={false}
        onChange={(kind) => edit({ kind: kind ?? "user", name: "" })}
      />
      {recipient.kind === "user" ? (
        <UserSelect label="User" user={recipient.name} onChange={(name) => edit({ name })} />
      ) : (
        <TextInput
          label={recipient.kind === "topic" ? "Topic" : "Token"}
          required
          value={recipient.name}
          error={fields["topic"]?.message ?? fields["token"]?.message}
          onChange={(event) => edit({ name: event.currentTarget.value })}
        />
      )}
      {recipient.kind === "token" ? (
        <Select
          label="Platform"
          data={[...PLATFORMS]}
          value={recipient.platform}
          allowDeselect={false}
          onChange={(platform) => edit({ platform: platform ?? "web" })}
        />
      ) : null}
    </>
  );
}

/** Form for a message to a user, a device or a topic. */
export function Send({ to, change }: { to: Recipient; change: Change }) {
  const [recipient, setRecipient] = useState(() => parse(to));
  const [title, setTitle] = useState("Test");
  const [body, setBody] = useState("A message from the dashboard");
  const [data, setData] = useState("");
  const [isSilent, setIsSilent] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const sending = useMutation({
    mutationFn: (message: PushMessage) => send(recipient, message),
    onSettled: () => queries.invalidateQueries({ queryKey: ["push"] }),
  });
  const close = () => change({ to: undefined });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    try {
      const parsed = data.trim() === "" ? {} : { data: parseJson(data) as NonNullable<PushMessage["data"]> };
      setProblem(null);
      sending.mutate({ title, body, ...parsed, ...(isSilent ? { silent: true } : {}) });
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  const fields = sending.error instanceof PlatformError ? sending.error.fields : {};
  const edit = (next: Partial<typeof recipient>) => setRecipient((before) => ({ ...before, ...next }));
  return (
    <Drawer
      opened
      onClose={close}
      position="right"
      size="md"
      title="Test message"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <form onSubmit={submit}>
        <Stack gap="sm">
          <RecipientFields {...{ recipient, edit, fields }} />
          <TextInput label="Title" value={title} onChange={(event) => setTitle(event.currentTarget.value)} />
          <Textarea
            label="Text"
            autosize
            minRows={2}
            value={body}
            onChange={(event) => setBody(event.currentTarget.value)}
          />
          <JsonInput
            label="Data"
            validationError="This is no JSON"
            description="An object for the app; may be empty"
            autosize
            minRows={2}
            value={data}
            onChange={setData}
            error={problem}
          />
          <Switch
            label="Silent: the app gets the data, and nothing is shown"
            checked={isSilent}
            onChange={(event) => setIsSilent(event.currentTarget.checked)}
          />
          <Problem of={sending.error} />
          {sending.data === undefined ? null : (
            <Alert color="green" variant="light" role="status">
              {sending.data}
            </Alert>
          )}
          <Group gap="xs">
            <Button type="submit" loading={sending.isPending} disabled={recipient.name === ""}>
              Send
            </Button>
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
          </Group>
        </Stack>
      </form>
    </Drawer>
  );
}
