import { Button, Stack } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode, SyntheticEvent } from "react";
import { messageOf, queries } from "../../api/server.ts";
import { Section } from "../../parts/page.tsx";

/** Returns a mutation that changes a user, then reloads users. `done` is its success message. */
export function useChange<Given = void>(done: string, change: (given: Given) => Promise<unknown>) {
  return useMutation({
    mutationFn: change,
    onSuccess() {
      notifications.show({ message: done });
      return queries.invalidateQueries({ queryKey: ["users"] });
    },
    onError: (error) => notifications.show({ color: "red", title: "This did not work", message: messageOf(error) }),
  });
}

/** Section of fields with Save; `save` null: read-only. */
export function FormCard({
  title,
  save,
  isSaving,
  children,
}: {
  title: string;
  save: (() => void) | null;
  isSaving: boolean;
  children: ReactNode;
}) {
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    save?.();
  };
  return (
    <Section title={title}>
      <form onSubmit={submit}>
        <Stack gap="sm">
          {children}
          {save === null ? null : (
            <Button type="submit" w="fit-content" loading={isSaving}>
              Save
            </Button>
          )}
        </Stack>
      </form>
    </Section>
  );
}
