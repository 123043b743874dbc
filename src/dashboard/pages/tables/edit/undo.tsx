import { Alert, Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation } from "@tanstack/react-query";
import { messageOf } from "../../../api/server.ts";
import { timeText } from "../../../parts/format.tsx";
import { type Source, undo } from "./source.ts";

/** Button that undoes the last edit of the config. */
export function Undo({ source }: { source: Source }) {
  const undoing = useMutation({
    mutationFn: undo,
    onSuccess: () => void notifications.show({ message: "The config is as it was before the last edit" }),
    onError: (error) => void notifications.show({ color: "red", title: "Not undone", message: messageOf(error) }),
  });
  if (source.undoable === 0) return null;
  return (
    <Button variant="default" loading={undoing.isPending} onClick={() => undoing.mutate()}>
      Undo
    </Button>
  );
}

/** Note that the last edit was put back, because the server did not start with it. */
export function PutBack({ source: { putBack } }: { source: Source }) {
  if (putBack === null) return null;
  return (
    <Alert color="orange" title="The last edit was put back">
      The server did not start with it ({timeText(putBack.at)}): {putBack.reason}
    </Alert>
  );
}
