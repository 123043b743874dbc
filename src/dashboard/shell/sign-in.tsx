import { Button, Center, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { type SyntheticEvent, useEffect, useState } from "react";
import { messageOf } from "../api/server.ts";
import { useSignIn } from "../api/session.tsx";

/** Sign-in by service key, which is sent to the server and stored nowhere. */
export function SignInPage() {
  const [key, setKey] = useState("");
  const signIn = useSignIn();
  useEffect(() => {
    document.title = "Sign in";
  }, []);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    signIn.mutate(key);
  };
  return (
    <Center mih="100dvh" p="md" component="main">
      <Paper withBorder p="xl" w="100%" maw={400} component="form" onSubmit={submit}>
        <Stack gap="md">
          <div>
            <Title order={1} size="h3">
              Sign in
            </Title>
            <Text size="sm" c="dimmed">
              With the root key or a service key of the config. <code>platform keys</code> prints the root key,{" "}
              <code>platform admin-link</code> a link that signs in without one.
            </Text>
          </div>
          <PasswordInput
            label="Service key"
            value={key}
            onChange={(event) => setKey(event.currentTarget.value)}
            error={signIn.error === null ? null : messageOf(signIn.error)}
            autoComplete="current-password"
            data-autofocus
            autoFocus
          />
          <Button type="submit" loading={signIn.isPending} disabled={key === ""}>
            Sign in
          </Button>
        </Stack>
      </Paper>
    </Center>
  );
}
