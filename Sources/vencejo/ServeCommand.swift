import VencejoHTTP2
import VencejoRPC
import VencejoServer
import VencejoStore
import VencejoTools

/// `vencejo serve`: the backend on its listeners, until it is told to end.
enum ServeCommand {
  static let help = """
    usage: vencejo serve [options]

    Serves the chat and record services and keeps their data in one folder. Prints
    'listening on ADDRESS' for each listener on standard output once it accepts calls.
    SIGTERM and SIGINT let running calls end, then stop. SIGHUP reads the settings anew and takes
    over certificates, log level, limits, open-sign-up and hook-network.

      --listen ADDRESS   HOST:PORT or unix:/PATH; may be repeated; port 0 takes a free one
                         (default: 127.0.0.1:7447)
      --data FOLDER      where the data is kept; made when it is missing (default: ./data)
      --threads N        event loops (default: one per core)
      --open-sign-up     let callers from other machines make accounts; without it only
                         callers on loopback and Unix sockets may
      --config FILE      settings, one 'name = value' on a line: the names of these options
                         without their dashes. What the command line says counts first, then
                         variables (VENCEJO_LOG_LEVEL for --log-level), then the file
      --call-limit B:R   calls of a user: B at once, R a second for good (default: 20000:2000);
                         likewise --change-limit for those that change something (10000:1000),
                         --device-limit for those of one device (5000:500), --attempt-limit
                         for attempts to sign in from one address (30:0.5)
      --hook-network A/N hooks may also reach this private network, and by plain http; may be
                         repeated
      --behind-proxy     callers on loopback are not the operator: everybody comes from there
      --tls-cert FILE    cipher TCP connections; the certificate, followed by its issuers'
                         (PEM); Unix sockets stay plain. SIGHUP reads the files anew
      --tls-key FILE     its private key (PEM)
      --tls-client-ca FILE
                         let in only clients with a certificate from these issuers (PEM)
      --log-level LEVEL  error, info (default) or debug, on standard error
    \(ServeObservability.help)

      vencejo serve
      vencejo serve --listen 127.0.0.1:7447 --listen unix:/run/vencejo.sock --data /var/lib/vencejo
    """

  private static let options: [ArgumentList.Option] =
    [
      .init("listen", short: "l", value: true), .init("data", short: "d", value: true),
      .init("threads", value: true), .init("open-sign-up"), .init("behind-proxy"),
      .init("hook-network", value: true), .init("config", value: true),
      .init("call-limit", value: true), .init("change-limit", value: true),
      .init("device-limit", value: true), .init("attempt-limit", value: true),
      .init("help", short: "h"),
    ] + TLSOptions.server + Log.options + ServeObservability.options

  static func run(_ arguments: some Sequence<String>, _ output: Output) async -> Int32 {
    do {
      let flags = try ArgumentList(arguments, options: options)
      if flags.has("help") {
        output.line(help)
        return ExitCode.ok
      }
      if let word = flags.words.first {
        throw ArgumentList.Fault("'\(word)' is not understood")
      }
      return try await serve(try ServeSettings.read(flags, options), flags, output)
    } catch let fault as ArgumentList.Fault {
      output.complain("vencejo serve: \(fault)\nTry 'vencejo serve --help'.")
      return ExitCode.usage
    } catch {
      output.complain("vencejo serve: \(error)" + hint(for: error))
      return ExitCode.failure
    }
  }

  private static func serve(
    _ arguments: ArgumentList, _ flags: ArgumentList, _ output: Output
  ) async throws -> Int32 {
    ProcessMemory.returnLargeBuffers()
    let log = try Log(arguments, output)
    let listen = arguments.all("listen")
    let addresses = try (listen.isEmpty ? ["127.0.0.1:7447"] : listen).map(address)
    var configuration = Server.Configuration()
    if let text = arguments["threads"] {
      guard let threads = Int(text), (1...1_024).contains(threads) else {
        throw ArgumentList.Fault("'\(text)' is no number of threads from 1 to 1024")
      }
      configuration.threads = threads
    }
    // A subscriber whose machine vanished is found out before TCP would give up on it.
    configuration.connection.keepaliveInterval = .seconds(30)
    configuration.connection.keepaliveTimeout = .seconds(10)
    let tls = try TLSOptions.server(arguments)
    let settings = try ServeSettings.backend(arguments)
    // Before everything it is to show.
    let channelz: [any Service] = arguments.has("channelz") ? [Channelz()] : []
    let observability = try ServeObservability(arguments, log)
    configuration.observers = observability.observers
    configuration.interceptors = observability.interceptors
    let backend = try Backend(configuration: settings)
    log.debug("opened \(settings.directory)")
    let health = Health()
    let server: Server
    do {
      server = try Server(
        listening: addresses, tls: tls, configuration: configuration,
        services: backend.services + [health, Reflection()] + channelz)
    } catch {
      backend.close()
      throw error
    }
    let draining: @Sendable () async -> Void = {
      log.info("draining")
      health.setAll(.notServing)
      backend.drain()
    }
    observability.start()
    let reloading: @Sendable () -> Void = { reload(flags, arguments, tls, backend, log) }
    await server.run(beforeDraining: draining, reloading: reloading) {
      for address in server.addresses { output.line("listening on \(address)") }
      log.info(
        "vencejo \(VencejoRPC.version), data in \(settings.directory), "
          + "\(configuration.threads) event loops")
    }
    backend.close()
    await observability.stop()
    log.info("stopped")
    return ExitCode.ok
  }

  private static func reload(
    _ flags: ArgumentList, _ before: ArgumentList, _ tls: ServerTLS?, _ backend: Backend, _ log: Log
  ) {
    do {
      let arguments = try ServeSettings.read(flags, options)
      let settings = try ServeSettings.backend(arguments)
      let level = try Log.level(arguments)
      try tls?.reload()
      backend.apply(settings)
      log.level = level
      let late = options.map(\.long).filter {
        !ServeSettings.live.contains($0) && arguments.all($0) != before.all($0)
      }
      log.info(
        "read the settings anew"
          + (late.isEmpty ? "" : "; these wait for a restart: \(late.joined(separator: ", "))"))
    } catch {
      log.error("kept the settings as they were: \(error)")
    }
  }

  /// What to do about it, on a line of its own.
  private static func hint(for error: any Error) -> String {
    let hint =
      switch error {
      case let error as HTTP2Error where error.kind == .addressInUse:
        "another program listens there: end it, or choose another with --listen"
      case let error as StoreError:
        switch error.reason {
        case "DATA_FOLDER_IN_USE": "end that server, or choose another folder with --data"
        case "DATA_FOLDER_UNREADABLE", "STORAGE_UNREADABLE":
          "choose a folder this user may write to with --data"
        case "NEWER_SCHEMA": "use that newer program, or another folder with --data"
        case "NOT_A_DATABASE", "STORAGE_DAMAGED":
          "put a backup of vencejo.sqlite in its place, or choose another folder with --data"
        default: ""
        }
      default: ""
      }
    return hint.isEmpty ? "" : "\nhint: \(hint)"
  }

  private static func address(_ text: String) throws(ArgumentList.Fault) -> SocketAddress {
    do {
      return try SocketAddress(parsing: text)
    } catch {
      throw ArgumentList.Fault("'\(text)' is no address to listen on: \(error)")
    }
  }
}
