import { Button, Drawer, Group, JsonInput, Stack, Textarea } from "@mantine/core";
import { type SyntheticEvent, useState } from "react";
import { messageOf } from "../../api/failure.ts";
import { Problem } from "../../parts/states.tsx";
import { NEIGHBOURS_SHOWN, VECTOR_IN_ADDRESS_MAX } from "./limits.ts";
import { Neighbours } from "./neighbours.tsx";
import { type Change, type Index, parseObject, parseVector } from "./state.ts";

interface Asked {
  vector: number[];
  filter: Record<string, never>;
}

interface NearestProps {
  index: Index;
  near: string;
  filter: string;
  change: Change;
}

/** The nearest neighbours of a pasted vector. */
export function Nearest(props: NearestProps) {
  const { index, change } = props;
  const [near, setNear] = useState(props.near);
  const [filter, setFilter] = useState(props.filter);
  const parsed = (): Asked => ({ vector: parseVector(near, index.dimensions), filter: parseObject(filter) });
  const [asked, setAsked] = useState<Asked | null>(() => {
    try {
      return parsed();
    } catch {
      return null;
    }
  });
  const [problem, setProblem] = useState<string | null>(null);
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    try {
      setAsked(parsed());
      setProblem(null);
      // A longer one would make an address that servers refuse.
      change({ near: near.length > VECTOR_IN_ADDRESS_MAX ? "" : near, filter: filter || undefined }, { replace: true });
    } catch (error) {
      setAsked(null);
      setProblem(messageOf(error));
    }
  };
  const close = () => change({ near: undefined, filter: undefined });
  return (
    <Drawer
      opened
      onClose={close}
      position="right"
      size="lg"
      title={`Nearest in ${index.name}`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <form onSubmit={submit}>
        <Stack gap="sm">
          <Textarea
            label="Vector"
            description={`${index.dimensions} numbers, as JSON or with spaces between them`}
            required
            autosize
            minRows={3}
            maxRows={10}
            value={near}
            onChange={(event) => setNear(event.currentTarget.value)}
          />
          <JsonInput
            label="Filter"
            description='By metadata, such as { "year": { "$gte": 1990 } }; may be empty'
            validationError="This is no JSON"
            autosize
            minRows={1}
            maxRows={8}
            value={filter}
            onChange={setFilter}
          />
          <Problem of={problem} />
          <Group gap="xs">
            <Button type="submit">Search</Button>
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
          </Group>
          {asked === null ? null : <Neighbours index={index} {...asked} count={NEIGHBOURS_SHOWN} />}
        </Stack>
      </form>
    </Drawer>
  );
}
