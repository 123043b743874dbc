package platform.client.realtime

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.Job
import kotlinx.coroutines.channels.BufferOverflow
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import platform.client.PlatformException
import platform.client.Transport
import platform.client.jsonOf
import platform.client.long
import platform.client.networkError
import platform.client.now
import platform.client.pathOf
import platform.client.queryOf
import platform.client.reconnectWait
import platform.client.text

private const val TICK_MS = 1_000L
private const val PING_MS = 20_000L

/** Silence after which the connection is tried, and time that the server has to answer. */
private const val SILENCE_MS = 5_000L
private const val PONG_MS = 3_500L
private const val MESSAGES_MAX = 1_000

/** States of a room: that of all players, and that of this user alone. */
public class RoomState(public val shared: JsonObject, public val mine: JsonObject)

/** Message that the room has sent. */
public class RoomMessage(public val type: String, public val data: JsonElement)

/** Whether a room is joined. `LEFT`: by [Room.close], or for the reason of [Room.problem]. */
public enum class RoomStatus { JOINING, JOINED, OFFLINE, LEFT }

/** Room that this user has joined, on a connection of its own. */
@OptIn(ExperimentalCoroutinesApi::class)
public class Room internal constructor(private val transport: Transport, private val scope: CoroutineScope, namespace: String, id: String) :
    AutoCloseable {
    private val path = pathOf("api", "room") + queryOf(mapOf("namespace" to namespace, "id" to id))
    private val confined = Dispatchers.Default.limitedParallelism(1)
    private val login = Login(transport)
    private val statuses = MutableStateFlow(RoomStatus.JOINING)
    private val present = MutableStateFlow(RoomState(JsonObject(emptyMap()), JsonObject(emptyMap())))
    private val said = MutableSharedFlow<RoomMessage>(0, MESSAGES_MAX, BufferOverflow.DROP_OLDEST)
    private val answers = HashMap<String, CompletableDeferred<JsonElement>>()
    private val versions = HashMap<String, Long>()
    private var socket: Socket? = null
    private var work: Job? = null
    private var lastId = 0L

    /** States now and after each change; the last known ones while the connection is lost. */
    public val states: StateFlow<RoomState> get() = present

    /** Messages that the room sends from now on. A slow collector loses the oldest of more than 1,000. */
    public val messages: Flow<RoomMessage> get() = said

    public val status: StateFlow<RoomStatus> get() = statuses

    /** Reason for which the room was left, null while it is not or where [close] has done it. */
    @Volatile
    public var problem: PlatformException? = null
        private set

    internal suspend fun join() {
        work = scope.launch(confined) { run() }
        try {
            statuses.first { it == RoomStatus.JOINED || it == RoomStatus.LEFT }
        } catch (problem: Throwable) {
            close()
            throw problem
        }
        problem?.let { throw it }
    }

    /** Runs an action and returns its result. It is sent once. Errors: 400 with the message that the action has thrown; 404 for an unknown one. */
    public suspend fun act(type: String, payload: Any? = null): JsonElement = withContext(confined) {
        val sent = jsonOf(payload)
        val requestId = (++lastId).toString()
        val answer = CompletableDeferred<JsonElement>()
        withTimeoutOrNull(ANSWER_MS) {
            val at = statuses.first { it == RoomStatus.JOINED || it == RoomStatus.LEFT }
            if (at == RoomStatus.LEFT) throw problem ?: networkError("The room was left")
            answers[requestId] = answer
            try {
                send(mapOf("type" to "send", "actionType" to type, "payload" to sent, "requestId" to requestId))
                answer.await()
            } catch (_: Closed) {
                throw networkError("The connection was lost before the answer")
            } finally {
                answers.remove(requestId)
            }
        } ?: throw networkError("The server did not answer in time")
    }

    /** Leaves the room. */
    override fun close() {
        work?.cancel()
        statuses.value = RoomStatus.LEFT
    }

    private fun send(message: Map<String, Any?>) = (socket ?: throw Closed(Socket.LOST)).send(jsonOf(message))

    private suspend fun run() {
        val user = transport.restore()?.user?.id
        var failures = 0
        try {
            while (true) {
                try {
                    val opened = login.open(path) { requireUser(user) }
                    serve(opened, user) { failures = 0 }
                } catch (end: Closed) {
                    if (end.code == KICKED) throw PlatformException(403, "The room has removed this user")
                    login.lost(end)
                } catch (error: PlatformException) {
                    if (!error.isPassing) throw error
                }
                if (statuses.value != RoomStatus.LEFT) statuses.value = RoomStatus.OFFLINE
                delay(reconnectWait(failures++))
            }
        } catch (error: PlatformException) {
            problem = error
        } finally {
            statuses.value = RoomStatus.LEFT
        }
    }

    /** Errors: 401 when the user who joined is gone. */
    private fun requireUser(user: String?) {
        if (transport.userId != user) throw PlatformException(401, if (transport.userId == null) "The session has ended" else "Another user has signed in")
    }

    private suspend fun serve(opened: Login.Opened, user: String?, onJoined: () -> Unit) {
        var token = opened.token
        try {
            socket = opened.socket
            send(mapOf("type" to "join"))
            var heard = now()
            var pinged = heard
            while (true) {
                val message = opened.socket.receive(TICK_MS)
                val time = now()
                if (message != null) {
                    heard = time
                    take(message, onJoined)
                }
                if (pinged > heard && time - pinged > PONG_MS) throw Closed(Socket.LOST)
                if (time - heard > SILENCE_MS && pinged <= heard || time - pinged > PING_MS) {
                    pinged = time
                    send(mapOf("type" to "ping"))
                }
                val fresh = if (transport.serviceKey == null) transport.token() else token
                requireUser(user)
                if (fresh != null && fresh != token) {
                    token = fresh
                    send(mapOf("type" to "auth", "token" to fresh))
                }
            }
        } finally {
            socket = null
            opened.socket.close()
            val lost = networkError("The connection was lost before the answer")
            answers.values.toList().forEach { it.completeExceptionally(lost) }
        }
    }

    private fun take(message: JsonObject, onJoined: () -> Unit) {
        val requestId = message.text("requestId")
        when (message.text("type")) {
            "sync" -> {
                versions["shared"] = message.long("sharedVersion")
                versions["player"] = message.long("playerVersion")
                present.value = RoomState(objectOf(message["sharedState"]), objectOf(message["playerState"]))
                statuses.value = RoomStatus.JOINED
                onJoined()
            }
            "shared_delta" -> changed("shared", message) { RoomState(changedBy(shared, it), mine) }
            "player_delta" -> changed("player", message) { RoomState(shared, changedBy(mine, it)) }
            "message" -> said.tryEmit(RoomMessage(message.text("messageType").orEmpty(), message["data"] ?: JsonNull))
            "action_result" -> answers[requestId]?.complete(message["result"] ?: JsonNull)
            "action_error" -> answers[requestId]?.completeExceptionally(problemOf(transport, message))
            "kicked" -> throw PlatformException(403, "The room has removed this user")
            "error" -> refused(requestId, problemOf(transport, message))
        }
    }

    private fun refused(requestId: String?, problem: PlatformException) {
        if (requestId != null) answers[requestId]?.completeExceptionally(problem)
        else if (problem.isPassing) throw Closed(TRY_AGAIN)
        else if (problem.status in setOf(401, 403) || statuses.value != RoomStatus.JOINED) throw problem
    }

    private fun changed(name: String, message: JsonObject, next: RoomState.(JsonObject) -> RoomState) {
        val version = message.long("version")
        // Something is missing: the answer is the whole state.
        if (version != (versions[name] ?: 0) + 1) return send(mapOf("type" to "join"))
        versions[name] = version
        present.value = present.value.next(objectOf(message["delta"]))
    }

    private companion object {
        const val KICKED = 4001
        const val TRY_AGAIN = 1013
    }
}

private fun objectOf(value: JsonElement?) = value as? JsonObject ?: JsonObject(emptyMap())

/** Returns the state after a delta, whose paths lead to new values, or to null where something goes. */
internal fun changedBy(state: JsonObject, delta: JsonObject): JsonObject =
    delta.entries.fold(state) { changed, (path, value) -> replaced(changed, path.split("."), value) }

private fun replaced(state: JsonObject, path: List<String>, value: JsonElement): JsonObject {
    val name = path.first()
    if (path.size > 1) return JsonObject(state + (name to replaced(objectOf(state[name]), path.drop(1), value)))
    return JsonObject(if (value is JsonNull) state - name else state + (name to value))
}
