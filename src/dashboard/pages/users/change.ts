import { notifications } from "@mantine/notifications";
import { useMutation } from "@tanstack/react-query";
import { messageOf } from "../../api/failure.ts";
import { queries } from "../../api/server.ts";

/** Carries out one change of a user, and loads users again, which ends it. `done` is said when it has worked. */
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
