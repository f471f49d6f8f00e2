// Where one looks: from longitude and latitude (or x and y) to pixels of the map and back. World
// units are degrees with longitudes narrowed by the cosine of the middle, so one scale holds both
// ways and what is square stays square.

export class Camera {
  constructor() {
    this.bounds = [-180, -90, 180, 90];
    this.narrow = 1;
    this.x = this.y = 0; // the middle, in world units
    this.scale = 1; // pixels per world unit
    this.width = this.height = 1;
  }

  see(bounds, lonlat) {
    this.bounds = bounds;
    const middle = ((bounds[1] + bounds[3]) / 2) * (Math.PI / 180);
    this.narrow = lonlat ? Math.max(Math.cos(middle), 0.1) : 1;
    this.fit();
  }

  resize(width, height) {
    const before = this.least();
    const zoomed = this.scale / before;
    this.width = width;
    this.height = height;
    this.scale = this.least() * (isFinite(zoomed) ? zoomed : 1);
    this.keep();
  }

  least() {
    const [west, south, east, north] = this.bounds;
    return 0.97 * Math.min(this.width / ((east - west) * this.narrow), this.height / (north - south));
  }

  fit() {
    const [west, south, east, north] = this.bounds;
    this.x = ((west + east) / 2) * this.narrow;
    this.y = -(south + north) / 2;
    this.scale = this.least();
  }

  // To pixels; of y, north is up.
  px(lon) { return (lon * this.narrow - this.x) * this.scale + this.width / 2; }
  py(lat) { return (-lat - this.y) * this.scale + this.height / 2; }
  lon(px) { return ((px - this.width / 2) / this.scale + this.x) / this.narrow; }
  lat(py) { return -((py - this.height / 2) / this.scale + this.y); }

  // West, south, east and north of what is seen, within the space.
  seen() {
    const [west, south, east, north] = this.bounds;
    return [
      Math.max(west, this.lon(0)), Math.max(south, this.lat(this.height)),
      Math.min(east, this.lon(this.width)), Math.min(north, this.lat(0)),
    ];
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.keep();
  }

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const least = this.least();
    const scale = Math.min(Math.max(this.scale * factor, least), least * 4000);
    const real = scale / this.scale;
    this.x += (px - this.width / 2) * (1 - 1 / real) / this.scale;
    this.y += (py - this.height / 2) * (1 - 1 / real) / this.scale;
    this.scale = scale;
    this.keep();
  }

  // The same look through a window that is larger by so many pixels on every side.
  wider(margin) {
    const least = this.least();
    const size = { width: this.width + 2 * margin, height: this.height + 2 * margin };
    return Object.assign(Object.create(Camera.prototype), this, size, { least: () => least });
  }

  // One cannot lose sight of the space.
  keep() {
    const [west, south, east, north] = this.bounds;
    this.x = Math.min(Math.max(this.x, west * this.narrow), east * this.narrow);
    this.y = Math.min(Math.max(this.y, -north), -south);
  }
}
