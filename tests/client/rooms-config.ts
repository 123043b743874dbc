import { defineConfig, Refusal } from "platform";

/** Config of the tests of rooms and channels. */
export default defineConfig({
  auth: { anonymous: true },
  realtime: {
    access: {
      presence: (_auth, channel) => channel !== "presence:staff",
      broadcast: (_auth, channel, event) => channel !== "broadcast:staff" && event !== "forbidden",
    },
  },
  rooms: {
    quiz: {
      maxPlayers: 3,
      messageRate: 1_000,
      reconnectTimeout: 60_000,
      access: { join: (_auth, roomId) => roomId !== "secret" },
      onCreate(room) {
        room.setShared({ joins: 0, leaves: 0, count: 0, board: { a: { b: 1 }, kept: { x: 1 } } });
      },
      onJoin(room, player) {
        room.setShared({ ...room.shared, joins: Number(room.shared["joins"]) + 1 });
        room.setPlayer(player.userId, { hand: ["ace"] });
      },
      onLeave(room) {
        room.setShared({ ...room.shared, leaves: Number(room.shared["leaves"]) + 1 });
      },
      actions: {
        add(room, _player, payload: { by: number }) {
          const count = Number(room.shared["count"]) + payload.by;
          room.setShared({ ...room.shared, count });
          return { count };
        },
        place(room, _player, payload: { path: string; value: number | null }) {
          room.setShared((state) => {
            const board = state["board"] as { [key: string]: { [key: string]: number } };
            const [first = "", second = ""] = payload.path.split("/");
            const row = board[first] ?? {};
            board[first] = row;
            if (payload.value === null) delete row[second];
            else row[second] = payload.value;
            return state;
          });
        },
        refuse() {
          throw new Refusal("Not now");
        },
        shout(room, player, payload) {
          room.send("shouted", { from: player.userId, payload });
        },
        draw(room, player) {
          room.setPlayer(player.userId, { hand: ["ace", "king"] });
        },
        kick(room, _player, payload: { userId: string }) {
          room.kick(payload.userId);
        },
      },
    },
  },
});
