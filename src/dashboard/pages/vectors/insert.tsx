import { Button, Drawer, Group, JsonInput, Stack, Textarea, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type SyntheticEvent, useState } from "react";
import { messageOf, queries, server } from "../../api/server.ts";
import { Problem } from "../../parts/states.tsx";
import { type Index, parseObject, parseVector } from "./state.ts";

function attempt<T>(parse: () => T): { value: T | null; problem: string | null } {
  try {
    return { value: parse(), problem: null };
  } catch (error) {
    return { value: null, problem: messageOf(error) };
  }
}

/** Form that inserts a vector, or replaces the one with its id. */
export function Insert({ index, onDone, onClose }: { index: Index; onDone(id: string): void; onClose(): void }) {
  const [id, setId] = useState("");
  const [values, setValues] = useState("");
  const [metadata, setMetadata] = useState("");
  const [problem, setProblem] = useState<{ values: string | null; metadata: string | null }>({
    values: null,
    metadata: null,
  });
  const save = useMutation({
    mutationFn: (vector: { id: string; values: number[]; metadata: Record<string, never> }) =>
      server.vectors(index.name).upsert([vector]),
    onSuccess: () => void queries.invalidateQueries({ queryKey: ["vectors", index.name] }),
  });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    const parsedValues = attempt(() => parseVector(values, index.dimensions));
    const parsedMetadata = attempt(() => parseObject(metadata));
    setProblem({ values: parsedValues.problem, metadata: parsedMetadata.problem });
    if (parsedValues.value === null || parsedMetadata.value === null) return;
    // A response that arrives after this form was closed must not open anything.
    save.mutate({ id, values: parsedValues.value, metadata: parsedMetadata.value }, { onSuccess: () => onDone(id) });
  };
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size="md"
      title={`New vector in ${index.name}`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <form onSubmit={submit}>
        <Stack gap="sm">
          <TextInput
            label="Id"
            description="A vector with this id is replaced"
            required
            data-autofocus
            value={id}
            onChange={(event) => setId(event.currentTarget.value)}
          />
          <Textarea
            label="Values"
            description={`${index.dimensions} numbers, as JSON or with spaces between them`}
            required
            autosize
            minRows={3}
            maxRows={10}
            value={values}
            error={problem.values}
            onChange={(event) => setValues(event.currentTarget.value)}
          />
          <JsonInput
            label="Metadata"
            description="An object; may be empty"
            validationError="This is no JSON"
            autosize
            minRows={2}
            maxRows={10}
            value={metadata}
            error={problem.metadata}
            onChange={setMetadata}
          />
          <Problem of={save.error} />
          <Group gap="xs">
            <Button type="submit" loading={save.isPending}>
              Save
            </Button>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
          </Group>
        </Stack>
      </form>
    </Drawer>
  );
}
