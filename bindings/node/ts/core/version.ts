/** The version of this package. */
export const version: string = (require("../../../package.json") as { version: string }).version;
