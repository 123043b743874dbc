package platform.client

import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.cancel
import kotlinx.coroutines.flow.StateFlow
import kotlinx.serialization.json.JsonElement
import okhttp3.Dispatcher
import okhttp3.OkHttpClient
import platform.client.realtime.Broadcast
import platform.client.realtime.Presence
import platform.client.realtime.Realtime
import platform.client.realtime.RealtimeStatus
import platform.client.realtime.Room
import java.util.concurrent.SynchronousQueue
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit

/**
 * Client of one server: of a user, of nobody, or of a program with a service key. It may be shared by all threads and coroutines.
 * Errors: `IllegalArgumentException` for a url without http or https.
 *
 * @param url Address of the server, with a path where it has one.
 * @param serviceKey Key of a program, to which rules do not apply. Never in an app that users have.
 * @param sessionStorage Place where the session is kept between runs.
 * @param httpClient Client of OkHttp whose proxies, certificates and interceptors are used.
 */
public class PlatformClient(
    url: String,
    serviceKey: String? = null,
    sessionStorage: SessionStorage = MemorySessionStorage(),
    httpClient: OkHttpClient = OkHttpClient(),
) : AutoCloseable {
    private val scope = CoroutineScope(SupervisorJob() + Dispatchers.Default)
    private val dispatcher = Dispatcher(daemons()).apply {
        maxRequests = 64
        maxRequestsPerHost = 64
    }
    private val http = httpClient.newBuilder()
        .dispatcher(dispatcher)
        // An API has no redirects, and credentials follow none.
        .followRedirects(false)
        .followSslRedirects(false)
        // What is sent again is decided here: a sign-in is not.
        .retryOnConnectionFailure(false)
        .connectTimeout(CONNECT_TIMEOUT_MS, TimeUnit.MILLISECONDS)
        .readTimeout(TIMEOUT_MS, TimeUnit.MILLISECONDS)
        .writeTimeout(TIMEOUT_MS, TimeUnit.MILLISECONDS)
        .build()
    internal val transport: Transport = Transport(baseOf(url), serviceKey, http, sessionStorage, scope)
    internal val realtime: Realtime = Realtime(transport, scope)

    /** Sign-in and the signed-in user. */
    public val auth: Auth = Auth(transport)

    /** State of the connection that live queries, presence and broadcasts share. */
    public val realtimeStatus: StateFlow<RealtimeStatus> get() = realtime.status

    /** Returns the tables of a namespace; with an instance, those of it alone. */
    public fun db(namespace: String, instance: String? = null): Database = Database(this, namespace, instance)

    /** Returns the files of a bucket. */
    public fun storage(bucket: String): Bucket = Bucket(transport, bucket)

    /** Returns who is on a channel: `presence("lobby")`. */
    public fun presence(name: String): Presence = Presence(realtime, "presence:$name")

    /** Returns the messages of a channel, which are not stored: `broadcast("chat")`. */
    public fun broadcast(name: String): Broadcast = Broadcast(realtime, "broadcast:$name")

    /**
     * Joins a room, which stays joined over lost connections until it is closed: `joinRoom("quiz", "sunday")`. Errors: 401, 403; 409 for a
     * full one.
     */
    public suspend fun joinRoom(namespace: String, id: String): Room = Room(transport, scope, namespace, id).also { it.join() }

    /** Sends any request with the caller's credentials, and returns the JSON of its answer: `request("GET", "/api/health")`. */
    public suspend fun request(method: String, path: String, params: Map<String, Any?> = emptyMap(), body: Any? = null): JsonElement =
        transport.json(Outgoing(method.uppercase(), path, params, body?.let(::jsonBody)))

    /** Closes the connections; flows end with an error. The session stays good at the server, and in the storage. */
    override fun close() {
        scope.cancel()
        dispatcher.cancelAll()
        dispatcher.executorService.shutdown()
        http.connectionPool.evictAll()
    }
}

/** Threads that do not keep a program alive. */
private fun daemons() = ThreadPoolExecutor(0, Int.MAX_VALUE, 60, TimeUnit.SECONDS, SynchronousQueue()) { work ->
    Thread(work, "platform-client").apply { isDaemon = true }
}
