import { Button, Group, SegmentedControl, Select, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type SyntheticEvent, useState } from "react";
import { server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { Loadable, Problem } from "../../parts/states.tsx";

const PREVIEW_HEIGHT_PX = 420;
const NAMES = [
  { value: "verification", label: "Verification of an address" },
  { value: "passwordReset", label: "Password reset" },
  { value: "magicLink", label: "Sign-in link" },
  { value: "emailOtp", label: "Sign-in code" },
  { value: "invite", label: "Invitation" },
  { value: "emailChange", label: "Change of the address" },
  { value: "emailChanged", label: "Changed address, to the former one" },
  { value: "accountMerged", label: "Merged accounts" },
];

/** Mails as their readers get them, with sample data. */
export function MailTemplates() {
  const { may } = useRights();
  const [name, setName] = useState("verification");
  const [language, setLanguage] = useState("");
  const [view, setView] = useState("html");
  const mail = useQuery({
    queryKey: ["mail-template", name, language],
    queryFn: () => server.users.mailTemplate(name, language === "" ? {} : { language }),
    retry: false,
  });
  return (
    <Stack gap="md" maw={720}>
      <Group align="end">
        <Select
          label="Mail"
          data={NAMES}
          value={name}
          allowDeselect={false}
          onChange={(next) => setName(next ?? "verification")}
        />
        <TextInput
          label="Language"
          placeholder="de-AT"
          value={language}
          onChange={(event) => setLanguage(event.currentTarget.value)}
        />
        <SegmentedControl
          value={view}
          onChange={setView}
          data={[
            { value: "html", label: "HTML" },
            { value: "text", label: "Text" },
          ]}
        />
      </Group>
      <Loadable query={mail}>
        {({ subject, text, html }) => (
          <Stack gap="xs">
            <Text fw={600}>{subject}</Text>
            {view === "html" ? (
              <iframe
                className="mail-preview"
                title="The mail as HTML"
                sandbox=""
                srcDoc={html}
                height={PREVIEW_HEIGHT_PX}
              />
            ) : (
              <Text size="sm" className="wrapped">
                {text}
              </Text>
            )}
          </Stack>
        )}
      </Loadable>
      {may("auth", "admin", "*", "write") ? <Try name={name} language={language} /> : null}
    </Stack>
  );
}

/** Sends the mail to an address. */
function Try({ name, language }: { name: string; language: string }) {
  const [to, setTo] = useState("");
  const send = useMutation({
    mutationFn: () => server.users.testMail(name, language === "" ? { to } : { to, language }),
  });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    send.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Group align="end">
        <TextInput
          label="Send it to"
          type="email"
          required
          value={to}
          onChange={(event) => setTo(event.currentTarget.value)}
        />
        <Button type="submit" loading={send.isPending}>
          Send a test
        </Button>
      </Group>
      {send.isSuccess ? (
        <Text size="sm" role="status">
          The mail was sent.
        </Text>
      ) : null}
      <Problem of={send.error} />
    </form>
  );
}
