// What TypeScript makes of the actions of rooms: checked by `tsc`, never run. [TC92]
import { defineConfig, type JsonValue, type TypesOf } from "platform";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(): T | undefined => undefined;

export const config = defineConfig({
  databases: { shared: { tables: { films: { schema: { title: { type: "string" } } } } } },
  rooms: {
    quiz: {
      access: { join: (_auth, roomId, { db }) => db("shared").table("films").get(roomId)?.title === "x" },
      actions: {
        guess(room, player, payload: { value: number }) {
          room.send("guessed", player.userId);
          return { isRight: payload.value === 42 };
        },
        untyped(room, player, payload) {
          holds<Equal<typeof payload, JsonValue>>();
          room.sendTo(player.userId, "echo", payload);
        },
        later: async () => ["a", 1] as const,
      },
    },
    quiet: {},
  },
});

type Quiz = TypesOf<typeof config>["rooms"]["quiz"];
holds<Equal<Parameters<Quiz["guess"]>[2], { value: number }>>();
holds<Equal<ReturnType<Quiz["guess"]>, { isRight: boolean }>>();
holds<Equal<ReturnType<Quiz["untyped"]>, void>>();

export const refused = defineConfig({
  rooms: {
    quiz: {
      // @ts-expect-error: an action gives JSON
      actions: {
        wrong: () => new Map(),
      },
    },
  },
});
