// An app that imports ControlClient needs the models of its calls.
@_exported import ControlProtocol
@_exported import TaskModel
