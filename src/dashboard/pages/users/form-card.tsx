import { Button, Stack } from "@mantine/core";
import type { ReactNode, SyntheticEvent } from "react";
import { Section } from "../../parts/section.tsx";

/** A section of fields with Save; `save` null: they are read only. */
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
