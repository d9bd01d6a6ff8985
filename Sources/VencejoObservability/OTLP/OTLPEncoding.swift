import VencejoRPC

/// Spans and metrics as OTLP's messages.
enum OTLPEncoding {
  static func traces(
    _ spans: [Span], _ configuration: OTLPExporter.Configuration
  ) -> OTLPTraceCollector.ExportTraceServiceRequest {
    .init(resourceSpans: [
      .init(
        resource: resource(configuration),
        scopeSpans: [.init(scope: scope, spans: spans.map(span))])
    ])
  }

  static func metrics(
    _ metrics: [Metric], _ configuration: OTLPExporter.Configuration, start: UInt64, now: UInt64
  ) -> OTLPMetricsCollector.ExportMetricsServiceRequest {
    .init(resourceMetrics: [
      .init(
        resource: resource(configuration),
        scopeMetrics: [
          .init(scope: scope, metrics: metrics.map { metric($0, start: start, now: now) })
        ])
    ])
  }

  private static var scope: OTLPCommon.InstrumentationScope {
    .init(name: "vencejo", version: VencejoRPC.version)
  }

  private static func resource(
    _ configuration: OTLPExporter.Configuration
  ) -> OTLPResource.Resource {
    .init(
      attributes: attributes(
        [("service.name", configuration.serviceName)] + configuration.attributes))
  }

  private static func attributes(
    _ pairs: [(key: String, value: String)]
  ) -> [OTLPCommon.KeyValue] {
    pairs.map { .init(key: $0.key, value: .init(value: .stringValue($0.value))) }
  }

  private static func span(_ span: Span) -> OTLPTrace.Span {
    var proto = OTLPTrace.Span()
    proto.traceId = Hex.bytes(span.context.traceID.high) + Hex.bytes(span.context.traceID.low)
    proto.spanId = Hex.bytes(span.context.spanID)
    proto.traceState = span.context.state.header ?? ""
    proto.parentSpanId = span.parentSpanID.map(Hex.bytes) ?? []
    proto.flags = span.context.isSampled ? 1 : 0
    proto.name = span.name
    proto.kind = span.kind == .server ? .server : .client
    proto.startTimeUnixNano = span.start
    proto.endTimeUnixNano = span.end
    proto.attributes =
      attributes(span.attributes) + [
        .init(
          key: "rpc.grpc.status_code", value: .init(value: .intValue(Int64(span.status.rawValue))))
      ]
    if span.isError { proto.status = .init(message: span.message, code: .error) }
    return proto
  }

  private static func metric(
    _ metric: Metric, start: UInt64, now: UInt64
  ) -> OTLPMetrics.Metric {
    var proto = OTLPMetrics.Metric()
    proto.name = metric.name
    proto.description = metric.description
    proto.unit = metric.unit
    var numbers: [OTLPMetrics.NumberDataPoint] = []
    var histograms: [OTLPMetrics.HistogramDataPoint] = []
    var isGauge = false
    for point in metric.points {
      let labels = attributes(point.labels.map { ($0.name, $0.value) })
      switch point.value {
      case .count(let count):
        numbers.append(
          .init(
            startTimeUnixNano: start, timeUnixNano: now, value: .asInt(Int64(clamping: count)),
            attributes: labels))
      case .gauge(let value):
        isGauge = true
        numbers.append(.init(timeUnixNano: now, value: .asDouble(value), attributes: labels))
      case .histogram(let histogram):
        histograms.append(
          .init(
            startTimeUnixNano: start, timeUnixNano: now, count: histogram.count,
            sum: histogram.sum, bucketCounts: histogram.counts, explicitBounds: histogram.bounds,
            attributes: labels))
      }
    }
    if !histograms.isEmpty {
      proto.data = .histogram(
        .init(dataPoints: histograms, aggregationTemporality: .cumulative))
    } else if isGauge {
      proto.data = .gauge(.init(dataPoints: numbers))
    } else {
      proto.data = .sum(
        .init(dataPoints: numbers, aggregationTemporality: .cumulative, isMonotonic: true))
    }
    return proto
  }
}
