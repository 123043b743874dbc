package platform.client.realtime

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.isActive
import kotlinx.coroutines.launch
import kotlinx.coroutines.plus
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.contentOrNull
import platform.client.PlatformException
import platform.client.Transport
import platform.client.jsonOf
import platform.client.networkError
import platform.client.now
import platform.client.reconnectWait
import platform.client.text

/** State of the connection. `IDLE`: nothing needs it. `OFFLINE`: it was lost or cannot be made, and is tried again. */
public enum class RealtimeStatus { IDLE, CONNECTING, LIVE, OFFLINE }

/** Silence after which the connection is tried, and time that the server has to answer. */
private const val SILENCE_MS = 5_000L
private const val PONG_MS = 3_500L

/** Longest time between two pings, which keep presence alive. */
private const val PING_MS = 20_000L
private const val TICK_MS = 1_000L

/** Subscriptions of one connection, as the server has it. */
private const val ROUTES_MAX = 200

/** Messages that are sent together after connecting, and the pause between two of these: the server takes 100 a second. */
private const val BURST = 40
private const val BURST_PAUSE_MS = 500L

/** Something that one connection carries: a subscription, or a channel. All calls come one after another. */
internal abstract class Route(val id: String) {
    /** User who began it; null: nobody, or a service key. */
    var userId: String? = null

    /** Reason for which it has ended. */
    var problem: PlatformException? = null

    /** Sends what it needs on a new connection. Errors: [Closed]. */
    abstract fun opened(link: Link)

    /** Takes a message that concerns it. */
    abstract fun received(message: JsonObject)

    /** Ends it, with the reason. */
    abstract fun failed(problem: PlatformException)

    open fun lost() {}
}

/** Authenticated connection, and what its messages belong to. */
internal class Link(val socket: Socket, val userId: String?, var token: String?) {
    /** Routes by the name under which their messages come: a feed or a channel. */
    val sources = HashMap<String, Route>()
    val answers = HashMap<String, CompletableDeferred<Unit>>()

    fun send(message: Map<String, Any?>): Unit = socket.send(jsonOf(message))
}

/**
 * The one WebSocket of a client, there while something needs it, and made again when it is lost. Everything here runs in one
 * coroutine at a time.
 */
@OptIn(ExperimentalCoroutinesApi::class)
internal class Realtime(val transport: Transport, parent: CoroutineScope) {
    private val confined = Dispatchers.Default.limitedParallelism(1)
    private val scope = parent + confined
    private val routes = LinkedHashMap<String, Route>()
    private val state = MutableStateFlow(RealtimeStatus.IDLE)
    private var loop: Job? = null
    @PublishedApi
    internal var link: Link? = null
        private set
    private var lastId = 0L
    private var checking: Job? = null
    private val login = Login(transport)

    val status: StateFlow<RealtimeStatus> get() = state

    suspend fun <T> confined(work: suspend () -> T): T = withContext(confined) { work() }

    fun nextId(): String = (++lastId).toString()

    fun route(id: String): Route? = routes[id]

    /** Returns the connection that a route is on already. */
    fun linkOf(route: Route): Link? = link?.takeIf { it.sources[route.id] === route }

    /** Adds a route. To be called confined, after the session was restored. Errors: 429 for more than the server takes. */
    fun add(route: Route) {
        if (routes.size >= ROUTES_MAX) throw PlatformException(429, "A client has at most $ROUTES_MAX subscriptions and channels")
        route.userId = transport.userId
        routes[route.id] = route
        // On the connection of the user before it would be refused; the loop is about to make another one.
        val present = link?.takeIf { it.userId == route.userId }
        if (present != null) attempting { route.opened(present) }
        if (loop?.isActive != true) loop = scope.launch { run() }
        if (!scope.isActive) fail(route, closedClient())
    }

    /** Removes a route; the connection ends with the last one. To be called confined. */
    fun remove(route: Route, farewell: Map<String, Any?>? = null) {
        if (routes.remove(route.id) == null) return
        val present = link
        if (present != null) {
            present.sources.values.removeAll { it === route }
            if (farewell != null) attempting { present.send(farewell) }
        }
        if (routes.isEmpty()) {
            loop?.cancel()
            loop = null
        }
    }

    /** Sends a message and waits until the server has done it. Never sent again: a lost connection leaves it unknown. To be called confined. */
    suspend fun ask(route: Route, message: Map<String, Any?>) {
        val requestId = nextId()
        val answer = CompletableDeferred<Unit>()
        val done = withTimeoutOrNull(ANSWER_MS) {
            val present = connected(route)
            present.answers[requestId] = answer
            try {
                present.send(message + ("requestId" to requestId))
                answer.await()
            } catch (_: Closed) {
                throw networkError("The connection was lost")
            } finally {
                present.answers.remove(requestId)
            }
        }
        if (done == null) throw networkError("The server cannot be reached")
    }

    private suspend fun connected(route: Route): Link {
        while (true) {
            route.problem?.let { throw it }
            linkOf(route)?.takeIf { it.userId == transport.userId }?.let { return it }
            delay(20)
        }
    }

    private suspend fun run() {
        val self = currentCoroutineContext()[Job]
        var failures = 0
        try {
            while (routes.isNotEmpty()) {
                state.value = if (failures == 0) RealtimeStatus.CONNECTING else RealtimeStatus.OFFLINE
                try {
                    val opened = login.open("/api/realtime") { routes.values.toList().forEach(::requireUser) }
                    val made = Link(opened.socket, opened.userId, opened.token)
                    failures = 0
                    serve(made)
                } catch (end: Closed) {
                    login.lost(end)
                } catch (_: AnotherUser) {
                    continue
                } catch (problem: PlatformException) {
                    if (!problem.isPassing) routes.values.toList().forEach { fail(it, problem) }
                }
                state.value = RealtimeStatus.OFFLINE
                delay(reconnectWait(failures++))
            }
        } finally {
            if (!scope.isActive) routes.values.toList().forEach { fail(it, closedClient()) }
            if (loop == null || loop === self) {
                loop = null
                state.value = RealtimeStatus.IDLE
            }
        }
    }

    private fun closedClient() = networkError("The client is closed")

    /** Ends a route whose user is gone. What nobody began goes on as the user who has signed in. */
    private fun requireUser(route: Route) {
        val user = transport.userId
        if (route.userId == null) route.userId = user
        else if (route.userId != user) fail(route, PlatformException(401, if (user == null) "The session has ended" else "Another user has signed in"))
    }

    private suspend fun serve(made: Link) {
        try {
            link = made
            state.value = RealtimeStatus.LIVE
            for ((index, route) in routes.values.toList().withIndex()) {
                if (index > 0 && index % BURST == 0) delay(BURST_PAUSE_MS)
                if (routes[route.id] === route) route.opened(made)
            }
            var heard = now()
            var pinged = heard
            while (true) {
                val message = made.socket.receive(TICK_MS)
                val time = now()
                if (message != null) {
                    heard = time
                    take(made, message)
                }
                if (transport.userId != made.userId) throw AnotherUser()
                if (pinged > heard && time - pinged > PONG_MS) throw Closed(Socket.LOST)
                if (time - heard > SILENCE_MS && pinged <= heard || time - pinged > PING_MS) {
                    pinged = time
                    made.send(mapOf("type" to "ping"))
                }
                renew(made)
            }
        } finally {
            if (link === made) link = null
            made.socket.close()
            val lost = networkError("The connection was lost before the answer")
            made.answers.values.toList().forEach { it.completeExceptionally(lost) }
            routes.values.forEach { it.lost() }
        }
    }

    /** Sends the access token when it has been replaced, so that the connection goes on by the rights of now. */
    private fun renew(made: Link) {
        if (transport.serviceKey != null || checking?.isActive == true) return
        val present = transport.session.value ?: return
        if (!present.isDue(now()) && present.accessToken == made.token) return
        checking = scope.launch {
            try {
                val token = transport.token()
                if (token == null || token == made.token || transport.userId != made.userId) return@launch
                made.token = token
                made.send(mapOf("type" to "auth", "token" to token))
            } catch (_: PlatformException) {
                delay(TICK_MS)
            } catch (_: Closed) {
                // The loop notices it.
            }
        }
    }

    private fun take(made: Link, message: JsonObject) {
        val type = message.text("type").orEmpty()
        when {
            type == "done" -> made.answers[message.text("requestId")]?.complete(Unit)
            type == "auth_refreshed" -> revoked(message)
            type == "error" -> refused(made, message)
            type == "subscribed" && "id" in message -> routes[message.text("id")]?.received(message)
            "feed" in message -> made.sources[message.text("feed")]?.received(message)
            "channel" in message -> made.sources[message.text("channel")]?.received(message)
        }
    }

    private fun revoked(message: JsonObject) {
        val ended = listOf("revokedIds", "revokedChannels").flatMap { name ->
            (message[name] as? JsonArray).orEmpty().map { (it as? JsonPrimitive)?.contentOrNull }
        }
        for (route in routes.values.filter { it.id in ended || it is Topic && it.channel in ended }) {
            fail(route, PlatformException(403, "The rights to this have ended"))
        }
    }

    private fun refused(made: Link, message: JsonObject) {
        val code = message.text("code").orEmpty()
        val asked = message.text("requestId")
        val route = message.text("id")?.let { routes[it] } ?: message.text("channel")?.let { made.sources[it] }
        if (asked == null && code == "RATE_LIMITED") throw Closed(TRY_AGAIN)
        val problem = problemOf(transport, message)
        if (asked != null) made.answers[asked]?.completeExceptionally(problem)
        else if (route != null) fail(route, problem)
    }

    private fun fail(route: Route, problem: PlatformException) {
        remove(route)
        route.problem = problem
        route.failed(problem)
    }

    /** Does what a lost connection may prevent; the loop notices that. */
    inline fun attempting(work: () -> Unit) {
        try {
            work()
        } catch (_: Closed) {
            link?.socket?.drop()
        }
    }

    /** Another user has signed in: the connection is made again. */
    private class AnotherUser : Exception()

    private companion object {
        const val TRY_AGAIN = 1013
    }
}

private val STATUSES = listOf(
    "AUTHENTICATED" to 401, "REVOKED" to 401, "DENIED" to 403, "INVALID_CHANNEL" to 404, "NO_HANDLER" to 404, "FULL" to 409,
    "TOO_MANY_SUBSCRIPTIONS" to 429, "TOO_MANY_TRACKED" to 429, "TOO_LARGE" to 413, "LIMITED" to 429,
)

/** Returns the error that a message describes. */
internal fun problemOf(transport: Transport, message: JsonObject): PlatformException {
    val code = message.text("code").orEmpty()
    val status = STATUSES.firstOrNull { (ending) -> code.endsWith(ending) }?.second ?: 400
    val isNobody = transport.userId == null && transport.serviceKey == null
    return PlatformException(if (status == 403 && isNobody) 401 else status, message.text("message") ?: code)
}

/** Runs [work] with the topic of a channel, one for all that use it. */
internal suspend fun <T> Realtime.withTopic(channel: String, work: suspend (Topic) -> T): T {
    transport.restore()
    return confined { work(route(channel) as Topic? ?: Topic(this, channel).also { add(it) }) }
}

/** Runs what has to be done although the caller was cancelled. */
internal suspend fun Realtime.atEnd(work: suspend () -> Unit): Unit = withContext(NonCancellable) { confined(work) }
